"""Insight as ``rich`` renderables: readable at 80 columns, with and without colour."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from clearhead.errors import InputError
from clearhead.explain.difference import Difference
from clearhead.explain.lens import Lens
from clearhead.explain.look import Look
from clearhead.explain.pictures import Gallery, HeadPicture, WordPicture
from clearhead.explain.predictions import Prediction, Predictions
from clearhead.explain.step_table import StepTable
from clearhead.views.terminal.difference import difference_parts
from clearhead.views.terminal.gallery import small_maps
from clearhead.views.terminal.heatmap import heatmap
from clearhead.views.terminal.look import look_parts
from clearhead.views.terminal.parts import Drawn, indented
from clearhead.views.terminal.predictions import (
    lens_parts,
    prediction_parts,
    predictions_parts,
)
from clearhead.views.terminal.steps import step_parts
from clearhead.views.terminal.word import word_parts

WIDTH = 80


def show(insight: object) -> Drawn:
    """Any insight as something that ``rich`` prints."""
    for kind, draw in RENDERERS.items():
        if isinstance(insight, kind):
            return Drawn(functools.partial(draw, insight))
    names = ", ".join(kind.__name__ for kind in RENDERERS)
    raise InputError(f"the terminal shows {names}; {type(insight).__name__} came.")


def plain_text(insight: object, width: int = WIDTH) -> str:
    """An insight as text without colour, in so many columns."""
    return show(insight).plain(width)


def _head(picture: HeadPicture, width: int) -> Iterable[RenderableType]:
    yield Text(f"  {picture.head}, every word (row) to every word (column)", style="bold")
    yield from heatmap(picture, width)
    yield from _notes(picture.notes)


def _word(picture: WordPicture, width: int) -> Iterable[RenderableType]:
    where = f"in {picture.head}" if picture.head is not None else f"over heads: {picture.pooled}"
    yield Text(f"  Where “{picture.mark.text}” looks {where}", style="bold")
    yield from word_parts(picture, width)
    yield from _notes(picture.notes)


def _gallery(gallery: Gallery, width: int) -> Iterable[RenderableType]:
    yield Text("  Every head as a small map: rows are queries, columns are keys", style="bold")
    yield from small_maps(gallery, width)
    yield from _notes(gallery.notes)


def _notes(notes: Iterable[str]) -> Iterable[RenderableType]:
    yield Text()
    for note in notes:
        yield indented(note)


RENDERERS: dict[type, Callable[[Any, int], Iterable[RenderableType]]] = {
    Look: look_parts,
    HeadPicture: _head,
    WordPicture: _word,
    Gallery: _gallery,
    StepTable: step_parts,
    Difference: difference_parts,
    Predictions: predictions_parts,
    Prediction: prediction_parts,
    Lens: lens_parts,
}
