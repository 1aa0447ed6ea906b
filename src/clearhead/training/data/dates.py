"""Dates as people write them and in ISO 8601: the training data of the built-in model ``dates``.

>>> from datetime import date
>>> written(date(2021, 3, 3), "{nth} of {month} {year}")
'3rd of March 2021'
>>> date(2021, 3, 3).isoformat()
'2021-03-03'
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from datetime import date, timedelta
from string import Formatter

FIRST, LAST = date(1000, 1, 1), date(2999, 12, 31)
RECENT = date(1900, 1, 1), date(2100, 12, 31)  # half of all dates are from here

FORMS = (
    "{day} {month} {year}",  # 3 March 2021
    "{day} {month}, {year}",
    "{nth} {month} {year}",
    "{nth} of {month} {year}",
    "{nth} of {month}, {year}",
    "the {nth} of {month}, {year}",
    "the {nth} of {month} {year}",
    "{month} {day}, {year}",
    "{month} {day} {year}",
    "{month} {nth}, {year}",
    "{month} {nth} {year}",
    "{month} the {nth}, {year}",
    "{mon} {day}, {year}",
    "{mon}. {day}, {year}",
    "{mon} {day} {year}",
    "{day} {mon} {year}",
    "{day} {mon}. {year}",
    "{day}-{mon}-{year}",
    "{word} of {month} {year}",  # third of March 2021
    "the {word} of {month}, {year}",
    "{month} {word}, {year}",
    "{weekday}, {day} {month} {year}",
    "{weekday} {nth} of {month} {year}",
    "{weekday}, {month} {day}, {year}",
    "{weekday} {month} {nth} {year}",
    "{wday}, {day} {mon} {year}",
    "{wday} {mon} {day} {year}",
    "{wday}, {mon} {day}, {year}",
    "{year} {month} {day}",
    "{year}, {month} {nth}",
    "{year} {mon} {day}",
    "{day}.{number}.{year}",
    "{day2}.{number2}.{year}",
    "{year}-{number2}-{day2}",
    "{year}/{number2}/{day2}",
    "{year}.{number}.{day}",
    "{number2}/{day2}/{year}",
    "{number}/{day}/{year}",
    "{day2}/{number2}/{year}",
    "{day}/{number}/{year}",
)
"""How training dates are written. Slashes only where the day cannot be taken for the month."""

HELD_OUT_FORMS = (
    "the {word} of {month} {year}",
    "{weekday} the {nth} of {month}, {year}",
    "{wday} {nth} {mon} {year}",
    "{day}. {month} {year}",
)
"""Never trained on: how far the model goes beyond the forms that it knows."""

MEANING = {
    "year": "year", "month": "month", "mon": "month", "number": "month", "number2": "month",
    "day": "day", "day2": "day", "nth": "day", "word": "day",
}  # fmt: skip
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
WORDS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
    "eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth",
    "eighteenth", "nineteenth", "twentieth", "twenty-first", "twenty-second", "twenty-third",
    "twenty-fourth", "twenty-fifth", "twenty-sixth", "twenty-seventh", "twenty-eighth",
    "twenty-ninth", "thirtieth", "thirty-first",
)  # fmt: skip


def written(day: date, form: str) -> str:
    """A date in one of the forms."""
    return "".join(text for text, _ in parts(day, form))


def parts(day: date, form: str) -> list[tuple[str, str]]:
    """The pieces of a written date, each with its meaning: year, month, day or nothing."""
    found: list[tuple[str, str]] = []
    for between, field, _, _ in Formatter().parse(form):
        found.append((between, ""))
        if field is not None:
            found.append((_field(day, field), MEANING.get(field, "")))
    return [(text, meaning) for text, meaning in found if text]


def _field(day: date, field: str) -> str:
    month, weekday = MONTHS[day.month - 1], WEEKDAYS[day.weekday()]
    return {
        "day": str(day.day),
        "day2": f"{day.day:02}",
        "nth": f"{day.day}{ending(day.day)}",
        "word": WORDS[day.day - 1],
        "month": month,
        "mon": month[:3],
        "number": str(day.month),
        "number2": f"{day.month:02}",
        "year": f"{day.year:04}",
        "weekday": weekday,
        "wday": weekday[:3],
    }[field]


def ending(number: int) -> str:
    """st, nd, rd or th."""
    if 11 <= number % 100 <= 13:
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


def clear(day: date, form: str) -> bool:
    """True if the date is unambiguous: 5/7 may be May or July; 17/7 and 7/7 are clear."""
    return "/" not in form or form.startswith("{year}") or day.day > 12 or day.day == day.month


def is_held_out(day: date) -> bool:
    """True for about every tenth day, chosen by its hash; it is never trained on, in any form."""
    return hashlib.sha256(day.isoformat().encode()).digest()[0] % 10 == 0


def date_pairs(
    count: int, seed: int, *, held_out: bool, forms: tuple[str, ...] = FORMS
) -> Iterator[tuple[str, str]]:
    """Pairs of a date as people write it and as ISO 8601 does, in capitals now and then.

    Either of days that are held out, or of days that are not.
    """
    generator = random.Random(f"dates/{seed}")
    made = 0
    while made < count:
        first, last = RECENT if generator.random() < 0.5 else (FIRST, LAST)
        day = first + timedelta(generator.randrange((last - first).days + 1))
        form = generator.choice(forms)
        if is_held_out(day) == held_out and clear(day, form):
            made += 1
            yield _cased(written(day, form), generator), day.isoformat()


def _cased(text: str, generator: random.Random) -> str:
    how = generator.random()
    if how < 0.7:
        return text
    return text.lower() if how < 0.9 else text.upper()
