"""A patch map in the terminal, at 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float
from rich.console import RenderableType
from rich.style import Style
from rich.text import Text

from clearhead.explain.patched.patch_map import PatchMap
from clearhead.views.patched.text import (
    HEADS,
    TITLES,
    answers,
    headline,
    proof_text,
    shown_columns,
    summary,
)
from clearhead.views.terminal.parts import QUIET, SHADES, bar, cut, indented, padded, shade
from clearhead.views.why.terminal import AGAINST, FOR
from clearhead.views.why.text import signed

LABEL = 14


def patch_parts(found: PatchMap, width: int) -> Iterator[RenderableType]:
    """The two texts and their answers, the maps, the strongest heads and the notes."""
    for name, text, said in zip(
        ("this", "other"), (found.text, found.donor), answers(found), strict=True
    ):
        yield Text.assemble((f"  {name:<6}", QUIET), cut(text, width - 9))
        yield Text(f"        → {cut(said, width - 11)}", style=FOR)
    yield Text()
    yield indented(headline(found), Style(bold=True))
    yield indented(summary(found), Style())
    columns = shown_columns(found)
    labels = [found.label(column) for column in columns]
    for part, title in TITLES.items():
        yield Text()
        yield Text(f"  {cut(title, width - 3)}", style="bold")
        yield from _map(found, labels, found.of(part)[:, columns].T, 1.0, width)
    yield Text()
    yield from _heads(found, width)
    yield Text()
    yield indented(proof_text(found), Style())
    for note in found.notes:
        yield indented(note)


def _map(
    found: PatchMap,
    labels: Sequence[str],
    rows: Float[np.ndarray, "row layer"],
    largest: float,
    width: int,
) -> Iterator[Text]:
    """Layers from left to right; the strongest cell is ``largest``, − is below 0."""
    label = min(LABEL, max(len(name) for name in labels))
    most = max(1, (width - label - 6) // 2)
    for start in range(0, len(found.layers), most):
        part = range(start, min(len(found.layers), start + most))
        ends = f"{found.layers[part[0]]} … {found.layers[part[-1]]}"
        yield Text(f"    {padded('', label)} {ends}", style=QUIET)
        for name, row in zip(labels, rows, strict=True):
            line = Text(f"    {padded(name, label)} ")
            for layer in part:
                line.append(*_cell(float(row[layer]), largest))
            line.rstrip()
            yield line


def _cell(share: float, largest: float) -> tuple[str, Style]:
    sign = shade(min(1.0, abs(share) / largest)) if largest else SHADES[0]
    if sign == SHADES[0]:
        return "· ", QUIET
    return (2 * sign, FOR) if share > 0 else (f"−{sign}", AGAINST)


def _heads(found: PatchMap, width: int) -> Iterator[Text]:
    largest = abs(found.strongest[0].share)
    yield Text("  Heads: each alone, its output taken from the other text", style="bold")
    for head in found.strongest[:HEADS]:
        line = Text(f"    {head.name:<8} {signed(head.share):>6}  ")
        room = max(8, width - 28)
        style = FOR if head.share > 0 else AGAINST
        yield line.append(bar(abs(head.share) / max(1.0, largest), room), style=style)
    names = [f"H{head}" for head in range(found.heads.shape[1])]
    yield Text()
    yield Text(f"  All heads: the strongest is {largest:.2f}", style="bold")
    yield from _map(found, names, found.heads.T, largest, width)
