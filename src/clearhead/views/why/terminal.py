"""A prediction and its parts in the terminal, at 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from rich.console import RenderableType
from rich.style import Style
from rich.text import Text

from clearhead.explain.why.parts import HeadPart, Why
from clearhead.views.terminal.parts import (
    ACCENT,
    HEIGHTS,
    QUIET,
    SHADES,
    bar,
    cut,
    indented,
    padded,
    shade,
)
from clearhead.views.why.text import (
    STRONGEST,
    ablated,
    ablation_text,
    becomes,
    headline,
    looks_at,
    mark_of,
    prediction,
    proof_text,
    rest,
    signed,
    source_name,
    summary,
)
from clearhead.visible import visible_text

FOR, AGAINST = Style(color="#4f74f9"), Style(color="#d9713f")
WORD, LABEL = 16, 24
WORDS = 8  # sources that get a bar
SOURCE, LEAST_SOURCE = 22, 9  # columns of what a head looks at
REST_OF_LINE = 34  # columns of a head's line beside that
AGAINST_SIGN = " against"


def why_parts(why: Why, width: int) -> Iterator[RenderableType]:
    """The text, the words, the heads, how the sum grows, and the checks."""
    for read, marks in ((why.source_text, why.source_columns), (why.text, why.columns)):
        if marks:  # given as ids there is no text, but tokens
            text = visible_text(" ".join((read or " ".join(one.text for one in marks)).split()))
            yield Text(f"  {cut(text, width - 3)}", style=QUIET)
    yield indented(f"→ {prediction(why)}", ACCENT)
    yield Text()
    yield indented(headline(why), Style(bold=True))
    yield indented(summary(why), Style())
    yield Text()
    yield Text("  Words: what all heads together took from each", style="bold")
    yield from _bars(why, width)
    yield Text()
    yield from _heads(why, width)
    yield Text()
    yield from _grid(why, width)
    yield from _layers(why, width)
    yield Text()
    yield indented(proof_text(why), Style())
    yield indented(ablation_text(why), Style())
    for note in why.notes:
        yield indented(note)


def _bars(why: Why, width: int) -> Iterator[Text]:
    shown = why.sources[:WORDS]
    lines = [(cut(source_name(why, one), LABEL), one.value) for one in shown]
    left = why.sources[WORDS:]
    if left:
        lines.append((f"{len(left)} more words", sum(one.value for one in left)))
    lines += rest(why)
    largest = max([abs(value) for _, value in lines] + [1e-30])
    label = max(WORD, max(len(name) for name, _ in lines))
    room = max(8, width - label - 18 - len(AGAINST_SIGN) * any(value < 0 for _, value in lines))
    for name, value in lines:
        line = Text(f"    {padded(name, label)}  {signed(value):>6}  ")
        line.append(bar(abs(value) / largest, room), style=FOR if value > 0 else AGAINST)
        if signed(value).startswith("−"):
            line.append(AGAINST_SIGN, style=QUIET)
        yield line
    total = f"    {padded('sum', label)}  {signed(why.total):>6}"
    yield Text(total, style="bold")


def _heads(why: Why, width: int) -> Iterator[Text]:
    measured = why.effects is not None
    last = max(12, len(becomes(why)))  # its column
    room = max(LEAST_SOURCE, min(SOURCE, width - REST_OF_LINE - last))
    yield Text("  Heads: the strongest parts", style="bold")
    heading = f"    {'head':<8} {'part':>6}  {'effect ' if measured else ''}"
    heading += f" {padded('takes it from', room)}  {becomes(why):>{last}}"
    yield Text(heading.rstrip(), style=QUIET)
    for part in why.heads[:STRONGEST]:
        line = Text(f"    {part.name:<8} ")
        line.append(f"{signed(part.value):>6}", style=FOR if part.value > 0 else AGAINST)
        effect, probability = ablated(why, part.name)
        if measured:
            line.append(f"  {effect:>6} ")
        else:
            line.append("  ")
        line.append(f" {padded(_source(part, room), room)}")
        if measured:
            line.append(f"  {probability:>{last}}  {mark_of(why, part.name)}")
        yield line


def _source(part: HeadPart, room: int) -> str:
    """What a head looks at; of a long word its weight is left, too."""
    word, _, weight = looks_at(part).rpartition(" ")
    return f"{cut(word, room - len(weight) - 1)} {weight}" if word else weight


def _grid(why: Why, width: int) -> Iterator[Text]:
    """Layers from left to right, heads from top to bottom: + for, − against."""
    names, grid = why.grid()
    largest = float(np.nanmax(np.abs(grid))) if grid.size else 0.0
    most = max(1, (width - 10) // 2)
    yield Text("  All heads: + for it, − against it; the fuller, the stronger", style="bold")
    for start in range(0, len(names), most):
        part = range(start, min(len(names), start + most))
        yield Text(f"    {names[part[0]]} … {names[part[-1]]}", style=QUIET)
        for head in range(grid.shape[1]):
            line = Text(f"    H{head:<3}", style=QUIET)
            for layer in part:
                value = float(grid[layer, head])
                height = 0.0 if value != value or largest == 0 else abs(value) / largest
                sign = shade(height, SHADES)
                cell = "· " if sign == " " else f"{'+' if value > 0 else '−'}{sign}"
                style = QUIET if sign == " " else FOR if value > 0 else AGAINST
                line.append(cell, style=style)
            line.rstrip()
            yield line


def _layers(why: Why, width: int) -> Iterator[Text]:
    """How the sum grows from layer to layer."""
    sums = [layer.sum for layer in why.layers]
    if len(sums) < 2:
        return
    low, high = min(0.0, *sums), max(0.0, *sums)
    span = (high - low) or 1.0
    yield Text()
    yield Text("  Layer by layer: the sum so far", style="bold")
    heights = "".join(HEIGHTS[1 + round((one - low) / span * (len(HEIGHTS) - 2))] for one in sums)
    for start in range(0, len(heights), width - 8):
        yield Text(f"    {heights[start : start + width - 8]}", style=FOR)
    first, last = why.layers[0], why.layers[-1]
    yield Text(
        f"    {first.name} {signed(first.sum).strip()} … {last.name} {signed(last.sum).strip()}"
        f"   (lowest {signed(min(sums)).strip()}, highest {signed(max(sums)).strip()})",
        style=QUIET,
    )
