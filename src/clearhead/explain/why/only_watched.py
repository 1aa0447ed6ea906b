"""What is known of a model that was only watched, and what is missing to explain its prediction."""

from __future__ import annotations

from collections.abc import Iterator

from torch import nn

from clearhead.checkpoints.from_transformers import is_transformers_model
from clearhead.errors import InputError
from clearhead.explain.look import Look
from clearhead.explain.make_look import make_look
from clearhead.explain.pictures import Source
from clearhead.trace.seen import Seen

MISSING = (
    "a trace has attention weights, but not W_O, the norms and the output matrix: how much of the "
    "prediction came from there cannot be computed."
)
LISTED = 3  # sources that are named


def not_loaded(given: object, position: int | str | None = None) -> InputError:
    """The error for what is no loaded model: with what is known about it."""
    found = getattr(given, "insight", given)
    if isinstance(found, Seen | Look):
        return InputError(
            f"why wants the model itself: {MISSING} {_known(found, position)}",
            hint="ch.look shows the weights; ch.why(ch.load(…), text) explains the prediction.",
        )
    if is_transformers_model(found):
        return InputError(
            f"why wants a model of ch.load; got transformers' {type(found).__name__} itself.",
            hint="ch.load takes it over without copying, if it knows the family: "
            "ch.why(ch.load(model, tokenizer=…), text).",
        )
    if isinstance(found, nn.Module):
        return InputError(
            f"why wants a model of ch.load: it does not know the parts of {type(found).__name__}.",
            hint="ch.load takes the folder that transformers' save_pretrained writes; any torch "
            "model can be watched: with ch.watch(model) as seen: …, then ch.look(seen).",
        )
    return InputError(
        f"why wants a model of ch.load, or the name of one; got {type(found).__name__}."
    )


def _known(found: Seen | Look, position: int | str | None) -> str:
    """Where the word attends: the strongest weights over all heads."""
    look = found if isinstance(found, Look) else make_look(found)
    if not look.rows:
        return "This trace is empty."
    picture = look.word(len(look.rows) - 1 if position is None else position)
    named = ", ".join(_named(picture.sources))
    return f"What is known: “{picture.mark.text}” attends to {named or 'nothing'}."


def _named(sources: tuple[Source, ...]) -> Iterator[str]:
    for one in sources[:LISTED]:
        yield f"“{one.mark.text}” ({one.weight:.2f} in {one.head})"
