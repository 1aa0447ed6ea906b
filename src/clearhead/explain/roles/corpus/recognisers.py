"""Dates, numbers, capitalised names and punctuation, recognised without any model.

They use spelling alone, in English, and prefer precision to recall:

- a date: 2024-03-12, 12/03/2024, 12 March 2024, March 12, 2024, March 2024, Monday, a year after
  *in*, *since*, *by*, *until*, *from*, *during*;
- a number: digits with separators, percent and currency signs, or a number word;
- a name: a run of capitalised words that does not begin the sentence, or begins it and goes on.
"""

from __future__ import annotations

import bisect
import re
import unicodedata

from clearhead.explain.roles.corpus.sentence import AnnotatedWord, Sentence, Span
from clearhead.text.words import WordTokenizer

_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|"
    r"Sep(?:t(?:ember)?)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\b\.?"
)
_DAY, _YEAR = r"\d{1,2}(?:st|nd|rd|th)?", r"(?:1[5-9]|20)\d\d"
_WEEKDAY = r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
DATE = re.compile(
    rf"\b{_YEAR}-\d\d-\d\d\b|\b\d{{1,2}}[/.]\d{{1,2}}[/.](?:\d\d)?\d\d\b"
    rf"|\b{_DAY} (?:of )?{_MONTH}(?:,? {_YEAR}\b)?|\b{_MONTH} {_DAY}\b(?:,? {_YEAR}\b)?"
    rf"|\b{_MONTH},? {_YEAR}\b|\b{_WEEKDAY}s?\b"
    rf"|(?<=\b[iI]n ){_YEAR}\b|(?<=\b[bB]y ){_YEAR}\b|(?<=since ){_YEAR}\b|(?<=until ){_YEAR}\b"
    rf"|(?<=[fF]rom ){_YEAR}\b|(?<=[dD]uring ){_YEAR}\b"
)
_SPELLED = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
    "thirty",
    "forty",
    "fifty",
    "sixty",
    "seventy",
    "eighty",
    "ninety",
    "hundred",
    "thousand",
    "million",
    "billion",
]
NUMBER = re.compile(
    rf"[$€£]?(?<![\w.])\d+(?:[.,]\d+)*(?![\w])%?|\b(?:{'|'.join(_SPELLED)})\b", re.IGNORECASE
)
_CAPITALISED = re.compile(r"[^\W\d_a-z][\w’']*", re.UNICODE)


def words_in(text: str) -> tuple[AnnotatedWord, ...]:
    """The words and marks of a text, without any annotation."""
    return tuple(AnnotatedWord(text[a:b], a, b) for a, b in WordTokenizer.spans(text))


def recognised(text: str) -> dict[str, tuple[Span, ...]]:
    """Return the spans that the recognisers find, by label; a date is not a number as well."""
    dates = tuple(found.span() for found in DATE.finditer(text))
    numbers = tuple(
        found.span() for found in NUMBER.finditer(text) if not _inside(dates, *found.span())
    )
    return {"date": dates, "number": numbers, "name": _names(text, dates)}


def plain_sentence(text: str) -> Sentence:
    """Make a sentence from a text without annotation."""
    return Sentence(text, words_in(text), recognised(text))


def is_punctuation(text: str) -> bool:
    """Return whether a word is nothing but punctuation."""
    return bool(text) and all(unicodedata.category(mark)[0] == "P" for mark in text)


def _inside(spans: tuple[Span, ...], start: int, end: int) -> bool:
    """Return whether a span shares a character with one of these, which are in order."""
    before = bisect.bisect_left(spans, (end, 0))
    return before > 0 and spans[before - 1][1] > start


def _names(text: str, dates: tuple[Span, ...]) -> tuple[Span, ...]:
    """Runs of capitalised words; a single one only where the sentence does not begin."""
    runs: list[list[int]] = []
    begins = True
    for start, end in WordTokenizer.spans(text):
        word = text[start:end]
        capitalised = _CAPITALISED.fullmatch(word) is not None and word not in ("I", "I'm", "I’m")
        dated = _inside(dates, start, end)
        if capitalised and not dated:
            if runs and runs[-1][1] >= start - 1 and text[runs[-1][1] : start] in ("", " "):
                runs[-1][1], runs[-1][3] = end, runs[-1][3] + 1
            else:
                runs.append([start, end, int(begins), 1])
        if not is_punctuation(word):
            begins = False
        elif word in '.!?:"“”':
            begins = True
    return tuple((start, end) for start, end, first, many in runs if many > 1 or not first)
