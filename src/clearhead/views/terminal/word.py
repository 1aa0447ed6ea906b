"""Where one word looks: the sentence with strengths, and bars."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import RenderableType
from rich.style import Style
from rich.text import Text

from clearhead.explain.pictures import Mark, Source, WordPicture
from clearhead.views.numbers import measure_text, weight_text
from clearhead.views.terminal.parts import (
    ACCENT,
    HEIGHTS,
    LEAST,
    QUIET,
    SHOWN_FROM,
    bar,
    cut,
    ink,
    level,
    padded,
    paint,
    shade,
)

QUERY = ACCENT + Style(underline=True)
BARS = 6  # sources that get one
LONGEST = 24  # cells of a word
LINES = 6  # of a long text, around the word


def word_parts(picture: WordPicture, width: int) -> Iterator[RenderableType]:
    """The sentence and the bars."""
    yield from sentence(picture, width)
    yield Text()
    yield from source_bars(picture, width)


def sentence(picture: WordPicture, width: int) -> Iterator[Text]:
    """The words, coloured by strength, with their strengths as heights below them."""
    hidden = set(picture.hidden)
    largest = max(
        (float(s) for i, s in enumerate(picture.strengths) if i not in hidden), default=0.0
    )
    own = picture.own
    for places in _around(list(_lines(picture.marks, width - 4)), own, picture.sources):
        if places is None:
            yield Text("    …", style=QUIET)
            continue
        words, heights = Text("    "), Text("    ")
        for place in places:
            text = cut(picture.marks[place].text, LONGEST)
            strength = 0.0 if place in hidden else float(picture.strengths[place])
            height = level(strength, largest, picture.aids.colour)
            words.append(text, style=QUERY if place == own else _style(height))
            heights.append(shade(height, HEIGHTS) * cell_len(text), style=ink(height))
            words.append(" ")
            heights.append(" ")
        yield words
        if heights.plain.strip() and not _right_to_left(words.plain):
            heights.rstrip()
            yield heights


def source_bars(picture: WordPicture, width: int) -> Iterator[Text]:
    """The strongest sources, each with its weight, weight·‖v‖ and a bar; the hidden mass last."""
    shown = [source for source in picture.sources[:BARS] if source.weight >= LEAST]
    label = max([cell_len(cut(source.mark.text, LONGEST)) for source in shown] + [6])
    several, named = picture.head is None, picture.head is None and picture.aids.pool == "max"
    measure = measure_text(picture.aids.measure)
    values = measure == "weight" and any(source.value_weight is not None for source in shown)
    heading = f"    {padded('', label)}  {measure:>6}" + ("  ·‖v‖" if values else "")
    yield Text(heading + ("  in head" if named else ""), style=QUIET)
    taken = cell_len(heading) + (9 if named else 0)
    room = max(8, width - taken - 4)
    largest = max([source.weight for source in shown] + [picture.hidden_mass * (not several)] + [0])
    for source in shown:
        yield _bar_line(source, label, values, named, room, largest)
    rest, left = len(picture.sources) - len(shown), picture.beyond[len(shown)]
    if rest and left >= LEAST:
        more = "" if picture.aids.pool == "max" and several else f", together {weight_text(left)}"
        yield Text(f"    {rest} more word{'s' * (rest > 1)}{more}", style=QUIET)
    if picture.hidden:
        names = ", ".join(cut(picture.marks[place].text, 12) for place in picture.hidden[:3])
        line = f"    {padded('hidden', label)}  {weight_text(picture.hidden_mass):>6}"
        line += "   on average," if several else "  "
        yield Text(f"{line} on {names}{' …' if len(picture.hidden) > 3 else ''}", style=QUIET)


def _bar_line(
    source: Source, label: int, values: bool, named: bool, room: int, largest: float
) -> Text:
    line = Text(f"    {padded(source.mark.text, label)}  {weight_text(source.weight):>6}")
    if values:
        share = source.value_weight
        line.append("   " + ("    " if share is None else weight_text(share)), style=QUIET)
    if named:
        line.append(f"  {source.head:<7}")
    height = level(source.weight, largest)
    line.append("  " + bar(height, room), style=ink(height))
    return line


def _style(height: float) -> Style:
    return paint(height) if height >= SHOWN_FROM else Style()


def _lines(marks: Sequence[Mark], width: int) -> Iterator[list[int]]:
    """The places of the words of each line."""
    line: list[int] = []
    used = 0
    for place, mark in enumerate(marks):
        size = cell_len(cut(mark.text, LONGEST)) + 1
        if line and used + size > width + 1:
            yield line
            line, used = [], 0
        line.append(place)
        used += size
    if line:
        yield line


def _around(
    lines: list[list[int]], own: int | None, sources: Sequence[Source]
) -> list[list[int] | None]:
    """At most six lines: that of the word, those of its strongest sources, then their neighbours.

    None stands for lines that are left out.
    """
    if len(lines) <= LINES:
        return [*lines]
    of = {place: number for number, line in enumerate(lines) for place in line}
    listed = [one.column for one in sources[:BARS] if one.weight >= LEAST]
    wanted = [of[place] for place in [*([] if own is None else [own]), *listed]] or [0]
    near = [line + step for step in (1, -1, 2, -2, 3, -3, 4, -4, 5, -5) for line in wanted[:1]]
    kept = [line for line in dict.fromkeys([*wanted, *near]) if 0 <= line < len(lines)][:LINES]
    shown: list[list[int] | None] = []
    last = -1
    for line in sorted(kept):
        shown += [None] * (line != last + 1)
        shown.append(lines[line])
        last = line
    return shown if last == len(lines) - 1 else [*shown, None]


def _right_to_left(text: str) -> bool:
    """True if a terminal may show it from right to left: heights below would stand elsewhere."""
    return any(unicodedata.bidirectional(character) in ("R", "AL") for character in text)
