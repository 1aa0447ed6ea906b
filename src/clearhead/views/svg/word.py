"""A word as a picture: arcs to the words it looks at, and the strongest of them as bars."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clearhead.explain.pictures import Mark, WordPicture
from clearhead.views.numbers import weight_text
from clearhead.views.svg.parts import (
    ACCENT,
    INK,
    LINE,
    MARGIN,
    MASKED,
    QUIET,
    Drawing,
    colour_at,
    draw_notes,
    ink_on,
    shares_of,
    shortened,
    text_width,
)

SIZE = 18  # of the words
WIDTH = 860.0
LINE_HEIGHT = 66.0
ARCS, BARS = 10, 8
AROUND = 6  # words that are shown on either side of what matters in a long text
LONG = 120  # words


@dataclass(frozen=True)
class Box:
    """Where a word stands: its middle, its width and its base line."""

    column: int | None
    text: str
    x: float
    y: float
    width: float


def draw_word(picture: WordPicture) -> str:
    """The whole picture."""
    drawing = Drawing()
    own = picture.own
    boxes, bottom = _placed(picture, own, MARGIN + 130)
    by_column = {box.column: box for box in boxes if box.column is not None}
    if own is None:
        bottom += 70
        width = text_width(picture.mark.text, SIZE) + 12
        start = Box(None, picture.mark.text, WIDTH / 2, bottom, width)
    else:
        start = by_column[own]
    _draw_arcs(drawing, picture, by_column, start)
    _draw_words(drawing, picture, boxes if own is not None else [*boxes, start], start)
    drawing.text(MARGIN, MARGIN + 14, _title(picture), size=18, bold=True)
    below = _draw_bars(drawing, picture, bottom + 64)
    below = draw_notes(drawing, picture.notes, MARGIN, below + 22, WIDTH - 2 * MARGIN)
    return drawing.svg(WIDTH, below + 8, _title(picture))


def _title(picture: WordPicture) -> str:
    word = shortened(picture.mark.text, 24)
    return f"Where “{word}” looks: {picture.head or picture.pooled}"


def _salient_columns(picture: WordPicture) -> list[int]:
    return [source.column for source in picture.sources[:ARCS]]


def _shown_columns(picture: WordPicture, own: int | None) -> list[int | None]:
    """All words; of a long text those near what matters, None for what lies between."""
    count = len(picture.marks)
    if count <= LONG:
        return list(range(count))
    centres = [*_salient_columns(picture)[:BARS], *([] if own is None else [own])]
    near = {place for centre in centres for place in range(centre - AROUND, centre + AROUND + 1)}
    shown: list[int | None] = []
    last = -1
    for column in sorted(place for place in near if 0 <= place < count):
        if column != last + 1:
            shown.append(None)
        shown.append(column)
        last = column
    return shown if last == count - 1 else [*shown, None]


def _placed(picture: WordPicture, own: int | None, top: float) -> tuple[list[Box], float]:
    x, y, boxes, before = MARGIN, top, [], None
    for column in _shown_columns(picture, own):
        text = "…" if column is None else shortened(picture.marks[column].text, 40)
        width = text_width(text, SIZE) + 6
        mark = None if column is None else picture.marks[column]
        x += -4.0 if _touching(before, mark) else SIZE * 0.25
        if x + width > WIDTH - MARGIN and x > MARGIN:
            x, y = MARGIN, y + LINE_HEIGHT
        boxes.append(Box(column, text, x + width / 2, y, width))
        x += width
        before = mark
    return boxes, y


def _touching(before: Mark | None, mark: Mark | None) -> bool:
    if before is None or mark is None:
        return False
    return before.end == mark.start and before.start < before.end and mark.start < mark.end


def _draw_words(drawing: Drawing, picture: WordPicture, boxes: list[Box], start: Box) -> None:
    strengths = picture.strengths.copy()
    strengths[list(picture.hidden)] = 0
    most = max(float(strengths.max()) if strengths.size else 0.0, 0.05)
    shares = shares_of(strengths, most, picture.aids.colour)
    numbered = set(_salient_columns(picture)[:6])
    for box in boxes:
        share = 0.0 if box.column is None else float(shares[box.column])
        fill = INK
        if share >= 0.03:
            drawing.rect(box.x - box.width / 2, box.y - 18, box.width, 26, colour_at(share), 6)
            fill = ink_on(share)
        elif box.column in picture.hidden:
            fill = QUIET
        if box == start:
            drawing.frame(box.x - box.width / 2 - 1, box.y - 19, box.width + 2, 28, INK, 7)
        drawing.text(box.x, box.y, box.text, size=SIZE, anchor="middle", fill=fill)
        if box.column in numbered and float(strengths[box.column]) >= 0.005:
            number = weight_text(float(strengths[box.column]))
            drawing.text(box.x, box.y + 22, number, size=11, anchor="middle", fill=QUIET)


def _draw_arcs(drawing: Drawing, picture: WordPicture, boxes: dict[int, Box], start: Box) -> None:
    numbers = picture.strengths
    drawn = [column for column in _salient_columns(picture) if column in boxes]
    if not drawn:
        return
    most = float(np.max(numbers[drawn]))
    for column in reversed(drawn):
        end, weight = boxes[column], float(numbers[column])
        if end == start or weight < max(0.01, 0.04 * most):
            continue
        share = weight / most
        drawing.path(_curve(start, end), ACCENT, 1 + 3.5 * share, 0.25 + 0.7 * share)


def _curve(start: Box, end: Box) -> str:
    if abs(start.y - end.y) > 1:
        above = end.y < start.y
        y0, y1 = (start.y - 20, end.y + 28) if above else (start.y + 12, end.y - 20)
        bend = (y1 - y0) / 2
        return (
            f"M{start.x:.5g},{y0:.5g}C{start.x:.5g},{y0 + bend:.5g} "
            f"{end.x:.5g},{y1 - bend:.5g} {end.x:.5g},{y1:.5g}"
        )
    y = start.y - 21
    top = y - min(24 + abs(start.x - end.x) * 0.2, 88 if start.y < MARGIN + 140 else 34)
    return (
        f"M{start.x:.5g},{y:.5g}C{start.x:.5g},{top:.5g} {end.x:.5g},{top:.5g} {end.x:.5g},{y:.5g}"
    )


def _draw_bars(drawing: Drawing, picture: WordPicture, y: float) -> float:
    drawing.path(f"M{MARGIN},{y - 30:.5g}H{WIDTH - MARGIN}", LINE)
    for source in picture.sources[:BARS]:
        strength = float(picture.strengths[source.column])
        if strength < 0.005:
            break
        drawing.text(MARGIN + 130, y, shortened(source.mark.text, 18), anchor="end")
        drawing.rect(MARGIN + 142, y - 9, 380, 9, MASKED, 4.5)
        drawing.rect(MARGIN + 142, y - 9, max(2.0, 380 * min(1.0, strength)), 9, ACCENT, 4.5)
        drawing.text(MARGIN + 534, y, weight_text(strength))
        if picture.head is None and picture.aids.pool == "max":
            drawing.text(MARGIN + 580, y, f"in {source.head}", size=12, fill=QUIET)
        y += 24
    if picture.hidden and picture.hidden_mass >= 0.005:
        mean = "" if picture.head else ", the mean over heads"
        hidden = f"{weight_text(picture.hidden_mass)} on hidden words{mean}"
        drawing.text(MARGIN + 142, y, hidden, size=12, fill=QUIET)
        y += 20
    return y
