"""The difference of two looks as a picture: heads, words and weights, the largest first."""

from __future__ import annotations

import numpy as np

from clearhead.explain.difference import CellChange, Difference
from clearhead.explain.pictures import HeadPicture, Mark
from clearhead.views.numbers import weight_text
from clearhead.views.svg.parts import (
    ACCENT,
    LINE,
    MARGIN,
    MASKED,
    QUIET,
    Drawing,
    colour_at,
    draw_notes,
    shares_of,
    shortened,
    text_width,
)

WIDTH = 820.0
SHOWN = 10
ROW = 24.0
BEFORE, CHANGED = "#9aa0ad", "#c2410c"


def draw_difference(difference: Difference) -> str:
    """The whole picture."""
    drawing = Drawing()
    drawing.text(MARGIN, MARGIN + 14, "What changed", size=18, bold=True)
    for place, (name, said) in enumerate(sides(difference)):
        drawing.text(MARGIN, MARGIN + 40 + 20 * place, f"{name} {shortened(said, 96)}", fill=QUIET)
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
    y = _maps(drawing, difference, y + 44)
    y = draw_notes(drawing, difference.notes, MARGIN, y + 34, WIDTH - 2 * MARGIN)
    return drawing.svg(WIDTH, y + 8, "What changed")


def sides(difference: Difference) -> list[tuple[str, str]]:
    """The two sides as they are named; with their models, where these are known and differ."""
    names = ("before:", "after: ")
    texts = (difference.before, difference.after)
    models = difference.models if len(set(difference.models)) > 1 else ("", "")
    return [
        (name, f"{text} ({model})" if model and model != text else text)
        for name, text, model in zip(names, texts, models, strict=True)
    ]


def _maps(drawing: Drawing, difference: Difference, y: float) -> float:
    """The most changed head on both sides; rows and cells that changed are framed."""
    if difference.pictures is None:
        return y - 44
    half = (WIDTH - 3 * MARGIN) / 2
    below = y
    most = max(map(strongest_shown, difference.pictures)) or 1.0  # one scale for both
    for side, picture in enumerate(difference.pictures):
        x = MARGIN + side * (half + MARGIN)
        title = f"{picture.head} {('before', 'after')[side]}"
        drawing.text(x, y, title, bold=True)
        changed = [(_marks(one, side), one) for one in difference.changes]
        framed = {
            marks for marks, one in changed if one.head == picture.head and marks[1] is not None
        }
        below = max(below, _map(drawing, picture, framed, (x, y + 14, half), most))
    return below


def _marks(change: CellChange, side: int) -> tuple[Mark, Mark | None]:
    if side == 0:
        return change.row, change.column
    return change.other_row, change.other_column


def _map(
    drawing: Drawing,
    picture: HeadPicture,
    framed: set[tuple[Mark, Mark | None]],
    place: tuple[float, float, float],
    most: float,
) -> float:
    x, y, width = place
    names = max((text_width(shortened(mark.text, 12), 11) for mark in picture.rows), default=0.0)
    cell = min(26.0, (width - names - 10) / max(1, len(picture.columns)))
    weights = np.where(np.isin(np.arange(len(picture.columns)), picture.hidden), 0, picture.weights)
    shares = shares_of(weights, most, picture.aids.colour)
    above = y + 60
    for column, mark in enumerate(picture.columns):
        across = x + names + 10 + (column + 0.6) * cell
        drawing.text(across, above - 5, shortened(mark.text, 10), size=10, rotation=-55)
    for row, mark in enumerate(picture.rows):
        top = above + row * cell
        drawing.text(
            x + names + 4, top + cell / 2 + 4, shortened(mark.text, 12), size=11, anchor="end"
        )
        for column, other in enumerate(picture.columns):
            left = x + names + 10 + column * cell
            seen = bool(picture.visible[row, column]) and column not in picture.hidden
            fill = colour_at(float(shares[row, column])) if seen else MASKED
            drawing.rect(left, top, cell - 1, cell - 1, fill)
            if (mark, other) in framed:
                drawing.frame(left - 0.5, top - 0.5, cell, cell, CHANGED, 2)
    return above + len(picture.rows) * cell + 10


def strongest_shown(picture: HeadPicture) -> float:
    """The largest weight of the columns that are not hidden."""
    shown = np.delete(picture.weights, list(picture.hidden), axis=1)
    return float(shown.max()) if shown.size else 0.0


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
        drawing.text(x + 148 + track, y, weight_text(distance))
    return y


def _changes(drawing: Drawing, difference: Difference, y: float) -> float:
    drawing.text(MARGIN, y, "Weights that changed most", bold=True)
    for one in difference.changes[:SHOWN]:
        y += ROW
        drawing.text(MARGIN, y, one.head, fill=QUIET)
        row = _pair(one.row.text, one.other_row.text)
        column = shortened(one.column_text, 20)
        drawing.text(MARGIN + 70, y, f"{row} looks at {column}")
        drawing.text(MARGIN + 400, y, weight_text(one.before), anchor="end", fill=QUIET)
        for place, (weight, colour) in enumerate(((one.before, BEFORE), (one.after, ACCENT))):
            drawing.rect(MARGIN + 412, y - 10 + place * 6, max(1.5, 260 * weight), 5, colour, 2)
        drawing.text(MARGIN + 684, y, weight_text(one.after), bold=True)
    return y
