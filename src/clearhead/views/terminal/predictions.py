"""What a model says next, in the terminal: every token, bars of one position, the lens."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from rich.cells import cell_len
from rich.console import RenderableType
from rich.text import Text

from clearhead.explain.lens import Lens
from clearhead.explain.predictions import Prediction, Predictions
from clearhead.explain.why.target import PredictedToken
from clearhead.views.numbers import share_text
from clearhead.views.terminal.parts import ACCENT, QUIET, bar, cut, indented, ink, padded
from clearhead.visible import visible_text

LABEL = 18
CELL = 14  # columns of one word in the lens
TOKEN = 11  # columns of a token in the list of all


def predictions_parts(predictions: Predictions, width: int) -> Iterator[RenderableType]:
    """A line for each token: the one that came, its probability, rank and surprise, and others."""
    yield Text(f"  {predictions_title(predictions)}", style="bold")
    names = ("token",) if predictions.masked else ("after", "came")
    heading = "".join(padded(name, TOKEN) + " " for name in names)
    yield Text(f"    {heading} prob.    rank   bits  likeliest others", style=QUIET)
    for one in predictions.all:
        line = Text(f"    {padded(predictions.tokens[one.position], TOKEN)} ")
        if not predictions.masked:
            came = "" if one.came is None else shown_token(one.came.text)
            line.append(f"{padded(came, TOKEN)} ", style=ACCENT)
        line.append(_numbers(one))
        line.append(fitting(one.others, width - line.cell_len), style=QUIET)
        line.rstrip()
        yield line
    yield Text("  bits: the surprise of the token that came, −log₂ of its probability", style=QUIET)


def predictions_title(predictions: Predictions) -> str:
    """The title of a list of all predictions."""
    what = "What the model says at each token" if predictions.masked else "What the model says next"
    mean = predictions.bits
    return what if math.isnan(mean) else f"{what}: {mean:.2f} bits a token"


def _numbers(one: Prediction) -> str:
    if one.came is None or one.surprise is None:
        return " " * 23
    return f"{share_text(one.came.probability):>6} {one.came.rank:7,} {one.surprise:6.2f}  "


def fitting(tokens: Iterable[PredictedToken], room: int) -> str:
    """So many tokens with their probabilities as fit, each whole."""
    shown = ""
    for token in tokens:
        name = cut(shown_token(token.text), LABEL)
        longer = f"{shown}{' · ' if shown else ''}{name} {token.probability:.2f}"
        if cell_len(longer) > room:
            break
        shown = longer
    return shown


def prediction_title(prediction: Prediction) -> str:
    """The title of one position."""
    return f"What {'fits at' if prediction.masked else 'comes after'} “{prediction.mark.text}”"


def prediction_parts(prediction: Prediction, width: int) -> Iterator[RenderableType]:
    """The likeliest tokens with their probabilities, and the one that came."""
    yield Text(f"  {prediction_title(prediction)}", style="bold")
    room = max(8, width - LABEL - 20)
    for token in prediction.likeliest:
        share = share_text(token.probability)
        line = Text(f"    {padded(shown_token(token.text), LABEL)}  {share:>6}  ")
        line.append(bar(token.probability, room), style=ink(token.probability))
        yield line
    yield Text(f"    {padded('all others', LABEL)}  {share_text(prediction.rest):>6}", style=QUIET)
    if prediction.came is not None and prediction.surprise is not None:
        came = prediction.came
        said = f"{share_text(came.probability)}, rank {came.rank:,}, {prediction.surprise:.2f} bits"
        yield Text(f"    {padded(shown_token(came.text), LABEL)}  came: {said}", style=ACCENT)


def lens_parts(lens: Lens, width: int) -> Iterator[RenderableType]:
    """A line for each layer, a column for each word; the final answer is marked once it stands."""
    yield Text("  What the model would say after each layer", style="bold")
    together = max(1, (width - 10) // CELL)
    for start in range(0, len(lens.positions), together):
        columns = range(start, min(len(lens.positions), start + together))
        yield from _lens_columns(lens, columns)
    yield Text()
    yield indented(
        "The likeliest token after each layer, and its probability. * from here on it is the final "
        "answer; first: the first layer at which it is the likeliest."
    )


def _lens_columns(lens: Lens, columns: range) -> Iterator[RenderableType]:
    """The words that fit side by side."""
    yield Text()
    words = "".join(padded(cut(lens.marks[one].text, CELL - 1), CELL) for one in columns)
    yield Text(f"          {words}".rstrip(), style="bold")
    for layer in range(len(lens.ids)):
        line = Text(f"    L{layer:<5}", style=QUIET)
        for column in columns:
            token = padded(shown_token(lens.tokens[layer][column]), CELL - 6)
            standing = layer >= lens.appears[column]
            share = f"{lens.probabilities[layer, column]:.2f}".removeprefix("0")[:3]
            said = f"{token} {share}{'*' if standing else ''}"
            line.append(padded(said, CELL), style=ACCENT if standing else "")
        line.rstrip()
        yield line
    for name, numbers in (
        ("from", [f"L{lens.appears[one]}" for one in columns]),
        ("first", [f"L{lens.first[one]}" for one in columns]),
    ):
        cells = "".join(padded(number, CELL) for number in numbers)
        yield Text(f"    {name:<6}{cells}".rstrip(), style=QUIET)


def shown_token(text: str) -> str:
    """A token as it can be read: without the space before it, white space alone as signs."""
    visible = text.strip(" ") or text.replace(" ", "␣")
    return visible_text(visible.replace("\n", "⏎").replace("\t", "⇥"))
