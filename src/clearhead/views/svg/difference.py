"""The difference of two looks as a picture: heads, words and weights, the largest first."""

from __future__ import annotations

from clearhead.explain.difference import Difference
from clearhead.views.svg.parts import (
    ACCENT,
    LINE,
    MARGIN,
    MASKED,
    QUIET,
    Drawing,
    draw_notes,
    shortened,
)

WIDTH = 820.0
SHOWN = 10
ROW = 24.0
BEFORE = "#9aa0ad"


def draw_difference(difference: Difference) -> str:
    """The whole picture."""
    drawing = Drawing()
    drawing.text(MARGIN, MARGIN + 14, "What changed", size=18, bold=True)
    drawing.text(MARGIN, MARGIN + 40, f"before: {shortened(difference.before, 96)}", fill=QUIET)
    drawing.text(MARGIN, MARGIN + 60, f"after:  {shortened(difference.after, 96)}", fill=QUIET)
    top = MARGIN + 100
    heads = [(_pair(one.before, one.after), one.distance) for one in difference.heads[:SHOWN]]
    words = [
        (_pair(one.before.text, one.after.text), one.distance) for one in difference.words[:SHOWN]
    ]
    half = (WIDTH - 2 * MARGIN) / 2
    left = _bars(drawing, "Heads, by the mean distance of their rows", heads, MARGIN, top, half)
    right = _bars(drawing, "Words, by the mean over heads", words, MARGIN + half, top, half)
    y = max(left, right) + 22
    drawing.path(f"M{MARGIN},{y - 16:.5g}H{WIDTH - MARGIN}", LINE)
    y = _changes(drawing, difference, y + 10)
    y = draw_notes(drawing, difference.notes, MARGIN, y + 34, WIDTH - 2 * MARGIN)
    return drawing.svg(WIDTH, y + 8, "What changed")


def _pair(before: str, after: str) -> str:
    return shortened(before if before == after else f"{before} / {after}", 20)


def _bars(
    drawing: Drawing, title: str, bars: list[tuple[str, float]], x: float, y: float, width: float
) -> float:
    drawing.text(x, y, title, bold=True)
    track = width - 220
    for name, distance in bars:
        y += ROW
        drawing.text(x + 130, y, name, anchor="end")
        drawing.rect(x + 140, y - 9, track, 9, MASKED, 4.5)
        drawing.rect(x + 140, y - 9, max(2.0, track * min(1.0, distance)), 9, ACCENT, 4.5)
        drawing.text(x + 148 + track, y, f"{distance:.2f}")
    return y


def _changes(drawing: Drawing, difference: Difference, y: float) -> float:
    drawing.text(MARGIN, y, "Weights that changed most", bold=True)
    for one in difference.changes[:SHOWN]:
        y += ROW
        drawing.text(MARGIN, y, one.head, fill=QUIET)
        row = _pair(one.row.text, one.other_row.text)
        column = _pair(one.column.text, one.other_column.text)
        drawing.text(MARGIN + 70, y, f"{row} looks at {column}")
        drawing.text(MARGIN + 400, y, f"{one.before:.2f}", anchor="end", fill=QUIET)
        for place, (weight, colour) in enumerate(((one.before, BEFORE), (one.after, ACCENT))):
            drawing.rect(MARGIN + 412, y - 10 + place * 6, max(1.5, 260 * weight), 5, colour, 2)
        drawing.text(MARGIN + 684, y, f"{one.after:.2f}", bold=True)
    return y
