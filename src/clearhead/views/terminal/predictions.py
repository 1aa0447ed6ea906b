"""What a model says next, in the terminal: bars of one position, and the lens as a table."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from clearhead.explain.lens import Lens
from clearhead.explain.predictions import Prediction
from clearhead.views.terminal.parts import ACCENT, QUIET, bar, cut, ink, padded
from clearhead.visible import visible_text

LABEL = 18
CELL = 10  # columns of one word in the lens


def prediction_parts(prediction: Prediction, width: int) -> Iterator[RenderableType]:
    """The likeliest tokens with their probabilities, and the one that came."""
    yield Text(f"  What comes behind “{prediction.mark.text}”", style="bold")
    room = max(8, width - LABEL - 20)
    for token in prediction.likeliest:
        line = Text(f"    {padded(shown_token(token.text), LABEL)}  {token.probability:6.4f}  ")
        line.append(bar(token.probability, room), style=ink(token.probability))
        yield line
    yield Text(f"    {padded('all others', LABEL)}  {prediction.rest:6.4f}", style=QUIET)
    if prediction.came is not None and prediction.surprise is not None:
        came = prediction.came
        said = f"{came.probability:.4f}, rank {came.rank:,}, {prediction.surprise:.2f} bits"
        yield Text(f"    {padded(shown_token(came.text), LABEL)}  came: {said}", style=ACCENT)


def lens_parts(lens: Lens, width: int) -> Iterator[RenderableType]:
    """A line for each layer, a column for each word; the final answer is marked once it stands."""
    yield Text("  What the model would say after each layer", style="bold")
    together = max(1, (width - 8) // CELL)
    for start in range(0, len(lens.positions), together):
        columns = range(start, min(len(lens.positions), start + together))
        words = "".join(padded(cut(lens.marks[one].text, CELL - 1), CELL) for one in columns)
        yield Text(f"        {words}".rstrip(), style=QUIET)
        for layer in range(len(lens.ids)):
            line = Text(f"    L{layer:<3}", style=QUIET)
            for column in columns:
                token = cut(shown_token(lens.tokens[layer][column]), CELL - 1)
                standing = layer >= lens.appears[column]
                line.append(padded(token, CELL), style=ACCENT if standing else QUIET)
            line.rstrip()
            yield line
    yield Text("    marked: from here on it is the final answer", style=QUIET)


def shown_token(text: str) -> str:
    """A token as it can be read: without the space before it, white space alone as signs."""
    visible = text.strip(" ") or text.replace(" ", "␣")
    return visible_text(visible.replace("\n", "⏎").replace("\t", "⇥"))
