"""A head's attention map as a picture: rows are queries, columns are keys."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from clearhead.explain.pictures import HeadPicture, Mark
from clearhead.views.numbers import measure_text, weight_text
from clearhead.views.svg.parts import (
    ACCENT,
    INK,
    MARGIN,
    MASKED,
    QUIET,
    Drawing,
    colour_at,
    colours_at,
    draw_notes,
    draw_scale,
    ink_on,
    shares_of,
    shortened,
    text_width,
)

NAME = 16  # characters of a word beside its row
NUMBERED = 30.0  # pixels of a cell from which on its number is written into it
MOST_CELLS = 64  # words on a side that are drawn one by one; more become pixels
MOST_PIXELS = 1024
SIDE = 720.0  # pixels of the map at most
ROTATION = -50.0  # degrees of the columns' names


def draw_head(picture: HeadPicture) -> str:
    """The whole picture."""
    drawing = Drawing()
    longest = max(len(picture.rows), len(picture.columns), 1)
    cell = min(36.0, SIDE / longest)
    left = MARGIN + 26 + _widest(picture.rows)
    above = MARGIN + 64 + _widest(picture.columns) * 0.8
    weights = np.where(_hidden_mask(picture), 0, picture.weights)
    most = float(weights.max()) if weights.size else 0.0
    shares = shares_of(weights, most, picture.aids.colour)
    width, height = cell * len(picture.columns), cell * len(picture.rows)
    if longest <= MOST_CELLS:
        _draw_cells(drawing, picture, weights, shares, (left, above), cell)
    else:
        _draw_pixels(drawing, picture, shares, (left, above), (width, height))
    _draw_names(drawing, picture, (left, above), cell)
    whole = max(left + width + MARGIN + 40, 560.0)
    drawing.text(MARGIN, MARGIN + 14, _title(picture), size=18, bold=True)
    drawing.text(left, MARGIN + 40, "keys (looked at)", size=12, fill=QUIET)
    drawing.text(
        MARGIN + 8, above + min(height, 200) / 2, "queries", size=12, fill=QUIET, rotation=-90,
        anchor="middle",
    )  # fmt: skip
    below = above + height + 22
    draw_scale(drawing, left, below, most, picture.aids.colour, measure_text(picture.aids.measure))
    below = _draw_key(drawing, picture, left + 270, below)
    below = draw_notes(drawing, picture.notes, MARGIN, below + 28, whole - 2 * MARGIN)
    return drawing.svg(whole, below + 8, f"Attention of {picture.head}")


def _title(picture: HeadPicture) -> str:
    what = "looks from written to source words" if picture.kind == "cross" else "looks"
    return f"Where {picture.head} {what}"


def _widest(marks: tuple[Mark, ...]) -> float:
    return max((text_width(shortened(mark.text, NAME), 12) for mark in marks), default=0.0)


def _hidden_mask(picture: HeadPicture) -> np.ndarray:
    return np.isin(np.arange(len(picture.columns)), picture.hidden)[None]


def _draw_cells(
    drawing: Drawing,
    picture: HeadPicture,
    weights: Float[np.ndarray, "query key"],
    shares: Float[np.ndarray, "query key"],
    corner: tuple[float, float],
    cell: float,
) -> None:
    hidden = set(picture.hidden)
    for (row, column), strength in np.ndenumerate(shares):
        share = float(strength)
        x, y = corner[0] + column * cell, corner[1] + row * cell
        visible = bool(picture.visible[row, column])
        is_hidden = column in hidden
        fill = colour_at(share) if visible and not is_hidden else MASKED
        drawing.rect(x, y, cell - 1, cell - 1, fill)
        if is_hidden:
            drawing.path(
                f"M{x:.5g},{y + cell - 1:.5g}l{cell - 1:.5g},{1 - cell:.5g}", QUIET, 0.6, 0.5
            )
        weight = float(weights[row, column])
        if cell >= NUMBERED and weight >= 0.005 and visible:
            middle = x + (cell - 1) / 2
            number = weight_text(weight).removeprefix("0")
            drawing.text(
                middle,
                y + cell / 2 + 4,
                number,
                size=11,
                anchor="middle",
                fill=ink_on(share),
            )


def _draw_pixels(
    drawing: Drawing,
    picture: HeadPicture,
    shares: Float[np.ndarray, "query key"],
    corner: tuple[float, float],
    size: tuple[float, float],
) -> None:
    """One pixel for each cell; of very long texts the strongest of several."""
    masked = ~picture.visible | _hidden_mask(picture)
    pooled = _pooled(np.where(masked, -1.0, shares).astype(np.float32))
    image = colours_at(np.maximum(pooled, 0))
    image[pooled < 0] = [int(MASKED[at : at + 2], 16) for at in (1, 3, 5)]
    drawing.pixels(*corner, *size, image)


def _pooled(cells: Float[np.ndarray, "query key"]) -> Float[np.ndarray, "row column"]:
    for axis in (0, 1):
        count = cells.shape[axis]
        if count > MOST_PIXELS:
            starts = np.unique(np.arange(MOST_PIXELS) * count // MOST_PIXELS)
            cells = np.maximum.reduceat(cells, starts, axis=axis)
    return cells


def _draw_names(
    drawing: Drawing, picture: HeadPicture, corner: tuple[float, float], cell: float
) -> None:
    every = max(1, round(14 / cell + 0.49))
    left, above = corner
    for row in range(0, len(picture.rows), every):
        name = shortened(picture.rows[row].text, NAME)
        drawing.text(
            left - 7, above + (row + 0.5) * cell + 4, name, size=12, anchor="end", fill=INK
        )
    for column in range(0, len(picture.columns), every):
        name = shortened(picture.columns[column].text, NAME)
        fill = QUIET if column in picture.hidden else INK
        x = left + (column + 0.5) * cell + 4
        drawing.text(x, above - 7, name, size=12, fill=fill, rotation=ROTATION)


def _draw_key(drawing: Drawing, picture: HeadPicture, x: float, y: float) -> float:
    if not picture.visible.all():
        drawing.rect(x, y, 11, 11, MASKED)
        drawing.text(x + 17, y + 10, "masked", size=12, fill=QUIET)
        x += 80
    if picture.hidden:
        drawing.rect(x, y, 11, 11, MASKED)
        drawing.path(f"M{x:.5g},{y + 11:.5g}l11,-11", ACCENT, 0.8)
        drawing.text(x + 17, y + 10, "hidden", size=12, fill=QUIET)
    return y + 11
