"""A prediction and its parts as a picture: the sentence, bars of words and heads, all heads."""

from __future__ import annotations

import numpy as np

from clearhead.explain.pictures import Mark
from clearhead.explain.why.parts import Why
from clearhead.views.svg.parts import (
    ACCENT,
    INK,
    LINE,
    MARGIN,
    MASKED,
    PAPER,
    QUIET,
    Drawing,
    draw_notes,
    shortened,
    text_width,
    wrapped,
)
from clearhead.views.why.growth import growth_of
from clearhead.views.why.text import (
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

AGAINST = "#b4552d"  # --pin-0 of the page
WIDTH = 880.0
SIZE = 18  # of the words
ROW = 22.0
GROWTH = 70.0  # height of the bars of layers
WORDS, HEADS = 8, 8
LONG = 90  # words of a text that are drawn


def draw_why(why: Why) -> str:
    """The whole picture."""
    drawing = Drawing()
    drawing.text(MARGIN, MARGIN + 14, headline(why), size=18, bold=True)
    drawing.text(MARGIN, MARGIN + 38, prediction(why), fill=QUIET)
    y = MARGIN + 60
    for line in wrapped(summary(why), WIDTH - 2 * MARGIN, 13):
        drawing.text(MARGIN, y, line)
        y += 18
    y += 26
    if why.source_columns:
        y = _sentence(drawing, why, why.source_columns, "source", y)
    y = _sentence(drawing, why, why.columns, "text", y) + 20
    drawing.path(f"M{MARGIN},{y - 14:.5g}H{WIDTH - MARGIN}", LINE)
    left = _words(drawing, why, MARGIN, y + 14)
    right = _heads(drawing, why, MARGIN + 400, y + 14)
    y = max(left, right) + 18
    drawing.path(f"M{MARGIN},{y - 14:.5g}H{WIDTH - MARGIN}", LINE)
    y = _layers(drawing, why, _grid(drawing, why, y + 14))
    notes = (proof_text(why), ablation_text(why), *why.notes)
    y = draw_notes(drawing, notes, MARGIN, y + 24, WIDTH - 2 * MARGIN)
    return drawing.svg(WIDTH, y + 8, headline(why))


def mixed(value: float, largest: float) -> str:
    """The colour of a part: blue for, orange against, the paler the smaller."""
    share = 0.0 if largest <= 0 else min(1.0, abs(value) / largest)
    full = ACCENT if value > 0 else AGAINST
    stops = [[int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in (PAPER, full)]
    parts = (round(a + (b - a) * share) for a, b in zip(*stops, strict=True))
    return "#" + "".join(f"{part:02x}" for part in parts)


def _sentence(drawing: Drawing, why: Why, marks: tuple[Mark, ...], text: str, y: float) -> float:
    values = {one.column: one.value for one in why.sources if one.text == text}
    largest = max([abs(one.value) for one in why.sources] + [1e-30])
    shown = list(range(len(marks)))
    if len(marks) > LONG:
        strongest = sorted(values, key=lambda column: -abs(values[column]))[:LONG]
        shown = sorted(strongest)
    x, before = MARGIN, -1
    for column in shown:
        word = shortened(marks[column].text, 40)
        word = word if column == before + 1 else f"… {word}"
        width = text_width(word, SIZE) + 8
        if x + width > WIDTH - MARGIN and x > MARGIN:
            x, y = MARGIN, y + 52
        value = values.get(column, 0.0)
        share = abs(value) / largest
        if share >= 0.03:
            drawing.rect(x, y - 18, width, 26, mixed(value, largest), 6)
        fill = PAPER if share > 0.55 else INK
        drawing.text(x + width / 2, y, word, size=SIZE, anchor="middle", fill=fill)
        if share >= 0.03:
            number = signed(value)
            drawing.text(x + width / 2, y + 22, number, size=11, anchor="middle", fill=QUIET)
        x, before = x + width + 4, column
    return y + 44


def _words(drawing: Drawing, why: Why, x: float, y: float) -> float:
    lines = [(shortened(source_name(why, one), 20), one.value) for one in why.sources[:WORDS]]
    left = why.sources[WORDS:]
    if left:
        lines.append((f"{len(left)} more words", sum(one.value for one in left)))
    lines += rest(why)
    largest = max([abs(value) for _, value in lines] + [1e-30])
    drawing.text(x, y, "Words, over all heads; and the rest", bold=True)
    y += 26
    for name, value in lines:
        drawing.text(x + 130, y, name, anchor="end", size=12)
        drawing.rect(x + 140, y - 9, 150, 9, MASKED, 4.5)
        colour = ACCENT if value > 0 else AGAINST
        drawing.rect(x + 140, y - 9, max(1.5, 150 * abs(value) / largest), 9, colour, 4.5)
        drawing.text(x + 345, y, signed(value), anchor="end", size=12)
        y += ROW
    drawing.text(x + 130, y, "sum", anchor="end", size=12, bold=True)
    drawing.text(x + 345, y, signed(why.total), anchor="end", size=12, bold=True)
    return y + ROW


def _heads(drawing: Drawing, why: Why, x: float, y: float) -> float:
    drawing.text(x, y, "Heads", bold=True)
    drawing.text(x + 120, y, "part", anchor="end", size=12, fill=QUIET)
    source = x + (134 if why.effects is None else 194)
    drawing.text(source, y, "takes it from", size=12, fill=QUIET)
    if why.effects is not None:
        drawing.text(x + 180, y, "effect", anchor="end", size=12, fill=QUIET)
        drawing.text(x + 402, y, becomes(why), anchor="end", size=12, fill=QUIET)
    y += 26
    for part in why.heads[:HEADS]:
        drawing.text(x, y, part.name, size=12)
        colour = ACCENT if part.value > 0 else AGAINST
        drawing.text(x + 120, y, signed(part.value), anchor="end", size=12, fill=colour)
        drawing.text(source, y, shortened(looks_at(part), 22), size=12)
        effect, probability = ablated(why, part.name)
        if effect:
            confirmed = mark_of(why, part.name)
            drawing.text(x + 180, y, effect, anchor="end", size=12)
            drawing.text(x + 402, y, probability, anchor="end", size=12)
            drawing.text(x + 425, y, confirmed, anchor="end", size=12, fill=QUIET)
        y += ROW
    return y


def _grid(drawing: Drawing, why: Why, y: float) -> float:
    names, grid = why.grid()
    drawing.text(MARGIN, y, "All heads: blue for it, orange against it", bold=True)
    largest = float(np.nanmax(np.abs(grid))) if grid.size else 0.0
    cell = _cell(len(names))
    y += 14
    for head in range(grid.shape[1]):
        drawing.text(MARGIN, y + cell / 2 + 4, f"H{head}", size=11, fill=QUIET)
        for layer in range(len(names)):
            value = float(grid[layer, head])
            if value == value:
                place = MARGIN + 34 + layer * cell
                drawing.rect(place, y, cell - 2, cell - 2, MASKED, 3)
                drawing.rect(place, y, cell - 2, cell - 2, mixed(value, largest), 3)
        y += cell
    every = max(1, round(34 / cell))
    for layer in range(0, len(names), every):
        place = MARGIN + 34 + layer * cell + (cell - 2) / 2
        drawing.text(place, y + 12, names[layer], size=11, anchor="middle", fill=QUIET)
    return y + 18


def _cell(layers: int) -> float:
    """The width of a column of the map."""
    return min(26.0, (WIDTH - 2 * MARGIN - 40) / max(1, layers))


def _layers(drawing: Drawing, why: Why, y: float) -> float:
    """How the sum grows, one bar for each layer, under the columns of the map."""
    growth = growth_of(why, len(why.layers) * _cell(len(why.layers)), GROWTH)
    if not growth.bars:
        return y
    drawing.text(MARGIN, y + 20, "Layer by layer: the sum so far", bold=True)
    left, top = MARGIN + 34, y + 34
    for bar in growth.bars:
        fill = ACCENT if bar.layer.sum > 0 else AGAINST
        drawing.rect(left + bar.x, top + bar.y, bar.width, max(0.5, bar.height), fill, 1)
    drawing.path(f"M{left},{top + growth.zero:.5g}H{WIDTH - MARGIN}", LINE)
    first, last = why.layers[0], why.layers[-1]
    ends = f"{first.name} {signed(first.sum).strip()} … {last.name} {signed(last.sum).strip()}"
    drawing.text(left, top + GROWTH + 16, ends, size=11, fill=QUIET)
    return top + GROWTH + 20
