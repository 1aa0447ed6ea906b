"""Insight as SVG, for papers and slides: title, labels, scale and notes in one picture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clearhead.errors import InputError
from clearhead.explain.difference import Difference
from clearhead.explain.lens import Lens
from clearhead.explain.look import Look
from clearhead.explain.pictures import Gallery, HeadPicture, WordPicture
from clearhead.explain.predictions import Prediction, Predictions
from clearhead.explain.step_table import StepTable
from clearhead.views.svg.difference import draw_difference
from clearhead.views.svg.gallery import draw_gallery
from clearhead.views.svg.head import draw_head
from clearhead.views.svg.predictions import draw_lens, draw_prediction, draw_predictions
from clearhead.views.svg.steps import draw_steps
from clearhead.views.svg.word import draw_word

RENDERERS: dict[type, Callable[[Any], str]] = {
    HeadPicture: draw_head,
    WordPicture: draw_word,
    Gallery: draw_gallery,
    StepTable: draw_steps,
    Difference: draw_difference,
    Predictions: draw_predictions,
    Prediction: draw_prediction,
    Lens: draw_lens,
}


def svg(insight: object) -> str:
    """The picture as one SVG element."""
    draw = RENDERERS.get(type(insight))
    if draw is not None:
        return draw(insight)
    names = ", ".join(kind.__name__ for kind in RENDERERS)
    hint = "look.word(), look.head() or look.gallery() give one." if type(insight) is Look else None
    raise InputError(f"SVG shows one of {names}; {type(insight).__name__} came.", hint=hint)
