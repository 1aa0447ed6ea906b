"""A patch map as a picture: the texts, three maps of words by layers, and all heads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

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
from clearhead.views.svg.parts import (
    ACCENT,
    MARGIN,
    MASKED,
    QUIET,
    Drawing,
    draw_notes,
    shortened,
    wrapped,
)
from clearhead.views.why.svg import AGAINST, WIDTH, mixed
from clearhead.views.why.text import signed

LABELS = 120.0  # the width of the words beside a map
LARGEST = 24.0  # of a cell


def draw_patch_map(found: PatchMap) -> str:
    """The whole picture."""
    drawing = Drawing()
    drawing.text(MARGIN, MARGIN + 14, headline(found), size=18, bold=True)
    y = MARGIN + 40
    for text, said in zip((found.text, found.donor), answers(found), strict=True):
        drawing.text(MARGIN, y, shortened(text, 100))
        drawing.text(MARGIN + 16, y + 18, said, fill=QUIET, size=12)
        y += 42
    for line in wrapped(summary(found), WIDTH - 2 * MARGIN, 13):
        drawing.text(MARGIN, y, line)
        y += 18
    columns = shown_columns(found)
    labels = [found.label(column) for column in columns]
    for part, title in TITLES.items():
        y = _map(drawing, found, title, labels, found.of(part)[:, columns].T, 1.0, y + 22)
    names = [f"H{head}" for head in range(found.heads.shape[1])]
    largest = abs(found.strongest[0].share)
    title = f"Heads: each alone, at all words; the strongest is {largest:.2f}"
    y = _map(drawing, found, title, names, found.heads.T, largest, y + 22)
    y = _strongest(drawing, found, y + 22)
    notes = (proof_text(found), *found.notes)
    y = draw_notes(drawing, notes, MARGIN, y + 20, WIDTH - 2 * MARGIN)
    return drawing.svg(WIDTH, y + 8, headline(found))


def _map(
    drawing: Drawing,
    found: PatchMap,
    title: str,
    labels: Sequence[str],
    rows: Float[np.ndarray, "row layer"],
    largest: float,
    y: float,
) -> float:
    """Layers from left to right: blue brings the other text's answer, orange takes it away."""
    drawing.text(MARGIN, y, title, bold=True)
    cell = min(LARGEST, (WIDTH - 2 * MARGIN - LABELS) / len(found.layers))
    left = MARGIN + LABELS
    y += 12
    for name, row in zip(labels, rows, strict=True):
        drawing.text(
            left - 8, y + cell / 2 + 4, shortened(name, 18), size=12, anchor="end", fill=QUIET
        )
        for layer, share in enumerate(row.tolist()):
            place, size = left + layer * cell, cell - 2
            drawing.rect(place, y, size, size, MASKED, 3)
            if abs(share) >= 0.02 * largest:
                drawing.rect(place, y, size, size, mixed(share, largest), 3)
        y += cell
    every = max(1, round(34 / cell))
    for layer in range(0, len(found.layers), every):
        place = left + layer * cell + (cell - 2) / 2
        drawing.text(place, y + 12, found.layers[layer], size=11, anchor="middle", fill=QUIET)
    return y + 18


def _strongest(drawing: Drawing, found: PatchMap, y: float) -> float:
    drawing.text(MARGIN, y, "The strongest heads", bold=True)
    y += 24
    for number, head in enumerate(found.strongest[:HEADS]):
        x = MARGIN + (number % 4) * 200
        colour = ACCENT if head.share > 0 else AGAINST
        drawing.text(x, y, head.name, size=12)
        drawing.text(x + 110, y, signed(head.share), anchor="end", size=12, fill=colour)
        y += 22 if number % 4 == 3 else 0
    return y
