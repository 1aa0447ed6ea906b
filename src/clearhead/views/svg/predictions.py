"""What a model says next as a picture: every token, bars of one position, the lens."""

from __future__ import annotations

from clearhead.explain.lens import Lens
from clearhead.explain.predictions import Prediction, Predictions
from clearhead.views.numbers import share_text
from clearhead.views.svg.parts import (
    ACCENT,
    INK,
    MARGIN,
    MASKED,
    QUIET,
    Drawing,
    colour_at,
    ink_on,
    shortened,
)
from clearhead.views.terminal.predictions import (
    fitting,
    prediction_title,
    predictions_title,
    shown_token,
)

WIDTH = 640.0
ROW = 24.0
CELL = 84.0  # of the lens
WIDE = 880.0  # of the list of all
OTHERS = 44  # characters


def draw_predictions(predictions: Predictions) -> str:
    """A line for each token: the one that came, its probability as a bar, rank, bits, others."""
    drawing = Drawing()
    title = predictions_title(predictions)
    drawing.text(MARGIN, MARGIN + 14, title, size=18, bold=True)
    y = MARGIN + 48
    names = ("token", "") if predictions.masked else ("after", "came")
    for x, name in zip(COLUMNS, (*names, "probability", "", "rank", "bits", "likeliest others"),
                       strict=True):  # fmt: skip
        drawing.text(MARGIN + x, y, name, size=12, fill=QUIET, anchor=_anchor(x))
    for one in predictions.all:
        y += ROW
        drawing.text(MARGIN, y, shortened(predictions.tokens[one.position], 14))
        if one.came is not None and one.surprise is not None:
            _draw_came(drawing, one, y, named=not predictions.masked)
        others = fitting(one.others, OTHERS)
        drawing.text(MARGIN + COLUMNS[-1], y, others, size=12, fill=QUIET)
    note = "Bits: the surprise of the token that came, −log₂ of its probability."
    drawing.text(MARGIN, y + 30, note, size=11, fill=QUIET)
    return drawing.svg(WIDE, y + 44, title)


COLUMNS = (0.0, 116.0, 232.0, 318.0, 430.0, 486.0, 506.0)


def _anchor(x: float) -> str:
    return "end" if x in COLUMNS[4:6] else "start"


def _draw_came(drawing: Drawing, one: Prediction, y: float, *, named: bool) -> None:
    assert one.came is not None and one.surprise is not None
    if named:
        drawing.text(MARGIN + COLUMNS[1], y, shortened(shown_token(one.came.text), 14), bold=True)
    share = one.came.probability
    drawing.rect(MARGIN + COLUMNS[2], y - 9, 76, 9, MASKED, 4.5)
    drawing.rect(MARGIN + COLUMNS[2], y - 9, max(1.5, 76 * share), 9, ACCENT, 4.5)
    drawing.text(MARGIN + COLUMNS[3], y, share_text(share))
    drawing.text(MARGIN + COLUMNS[4], y, f"{one.came.rank:,}", anchor="end")
    drawing.text(MARGIN + COLUMNS[5], y, f"{one.surprise:.2f}", anchor="end")


def draw_prediction(prediction: Prediction) -> str:
    """Bars: the likeliest tokens, all others, and the token that came."""
    drawing = Drawing()
    title = shortened(prediction_title(prediction), 60)
    drawing.text(MARGIN, MARGIN + 14, title, size=18, bold=True)
    y = MARGIN + 54
    came = prediction.came
    lines = [(shown_token(one.text), one.probability) for one in prediction.likeliest]
    for name, share in [*lines, ("all others", prediction.rest)]:
        drawing.text(MARGIN + 150, y, shortened(name, 20), anchor="end")
        drawing.rect(MARGIN + 162, y - 9, 340, 9, MASKED, 4.5)
        drawing.rect(MARGIN + 162, y - 9, max(1.5, 340 * min(1.0, share)), 9, ACCENT, 4.5)
        drawing.text(MARGIN + 514, y, share_text(share))
        y += ROW
    if came is not None and prediction.surprise is not None:
        said = (
            f"{shown_token(came.text)} came: probability {share_text(came.probability)}, "
            f"rank {came.rank:,}, {prediction.surprise:.2f} bits"
        )
        drawing.text(MARGIN, y + 10, said, size=12, fill=QUIET)
        y += ROW
    return drawing.svg(WIDTH, y + 8, title)


def draw_lens(lens: Lens) -> str:
    """Layers from top to bottom, words from left to right; colours are probabilities."""
    drawing = Drawing()
    title = "What the model would say after each layer"
    drawing.text(MARGIN, MARGIN + 14, title, size=18, bold=True)
    top = MARGIN + 44
    for column, mark in enumerate(lens.marks):
        x = MARGIN + 44 + column * CELL
        drawing.text(x + CELL / 2, top, shortened(mark.text, 10), anchor="middle", bold=True)
    for layer in range(len(lens.ids)):
        y = top + 12 + layer * ROW
        drawing.text(MARGIN, y + 16, f"L{layer}", size=12, fill=QUIET)
        for column in range(len(lens.positions)):
            share = float(lens.probabilities[layer, column])
            x = MARGIN + 44 + column * CELL
            drawing.rect(x + 1, y, CELL - 2, ROW - 2, colour_at(share), 4)
            if layer >= lens.appears[column]:
                drawing.frame(x + 1, y, CELL - 2, ROW - 2, INK, 4)
            token = shortened(shown_token(lens.tokens[layer][column]), 10)
            drawing.text(x + CELL / 2, y + 15, token, size=12, anchor="middle", fill=ink_on(share))
    bottom = top + 12 + len(lens.ids) * ROW
    note = "Colour: the token's probability. Framed: from here on it is the final answer."
    drawing.text(MARGIN, bottom + 20, note, size=11, fill=QUIET)
    width = max(WIDTH, MARGIN * 2 + 44 + len(lens.positions) * CELL)
    return drawing.svg(width, bottom + 34, title)
