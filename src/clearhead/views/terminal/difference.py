"""The difference of two looks, in the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from clearhead.explain.difference import Difference
from clearhead.explain.pictures import Mark
from clearhead.views.numbers import weight_text
from clearhead.views.terminal.parts import QUIET, bar, cut, indented, ink, padded

SHOWN = 8
LABEL = 18


def difference_parts(difference: Difference, width: int) -> Iterator[RenderableType]:
    """The two, the heads and words that changed most, and the strongest single changes."""
    models = difference.models if len(set(difference.models)) > 1 else ("", "")
    for name, text, model in zip(
        ("before", "after"), (difference.before, difference.after), models, strict=True
    ):
        said = f"{text} ({model})" if model and model != text else text
        yield Text.assemble((f"  {name:<8}", QUIET), cut(said, width - 11))
    for name, words in (("gone", difference.gone), ("new", difference.new)):
        if words:
            yield Text.assemble((f"  {name:<8}", QUIET), cut(" ".join(words), width - 11))
    yield Text()
    yield Text("  Weights that changed most", style="bold")
    yield Text(f"    {padded('word → word', 2 * LABEL)}  head     before  after", style=QUIET)
    for change in difference.changes[:SHOWN]:
        looks = f"{_pair(change.row, change.other_row)} → "
        looks += change.column_text
        line = f"    {padded(looks, 2 * LABEL)}  {change.head:<8} "
        line += f"{weight_text(change.before):>6} {weight_text(change.after):>6}  "
        yield Text(line).append(*_signed(change.after - change.before))
    if len(difference.heads) > 1:
        yield Text()
        yield Text("  Heads that changed most (distance of their rows, 0 to 1)", style="bold")
        for head in difference.heads[:SHOWN]:
            name = head.before if head.before == head.after else f"{head.before} / {head.after}"
            yield _bar_line(name, head.distance, "", width)
    yield Text()
    yield Text("  Words whose attention changed most", style="bold")
    for word in difference.words[:SHOWN]:
        where = f"most in {word.head}" if len(difference.heads) > 1 else ""
        yield _bar_line(_pair(word.before, word.after), word.distance, where, width)
    yield Text()
    for note in difference.notes:
        yield indented(note)


def _bar_line(name: str, distance: float, where: str, width: int) -> Text:
    line = Text(f"    {padded(name, LABEL)}  {weight_text(distance)}  ")
    room = max(8, width - LABEL - 32)
    line.append(padded(bar(distance, room), room), style=ink(distance))
    line.append(f"  {where}" if where else "", style=QUIET)
    line.rstrip()
    return line


def _pair(before: Mark, after: Mark) -> str:
    return before.text if before.text == after.text else f"{before.text}/{after.text}"


def _signed(change: float) -> tuple[str, str]:
    return f"{'+' if change > 0 else '−'}{weight_text(abs(change))}", "bold"
