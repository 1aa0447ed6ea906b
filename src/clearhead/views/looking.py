"""``ch.look``, ``ch.steps`` and ``ch.diff``: insight that shows itself."""

from __future__ import annotations

from typing import Any

from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.explain.difference import make_difference
from clearhead.explain.look import Look
from clearhead.explain.pictures import Aids, HeadPicture
from clearhead.explain.reading import make_look
from clearhead.explain.worked_examples import worked_example
from clearhead.trace.seen import Seen
from clearhead.views.shown import Shown


def look(
    model: Any,
    text: str | None = None,
    *,
    source: str | None = None,
    word: int | str | None = None,
    head: str | None = None,
    generate: int = 0,
    **aids: Any,
) -> Shown:
    """See where the words of a text look.

        ch.look(ch.load("smollm2"), "The kids were scared of the lions, so they left right away.")

    Args:
        model: from ``ch.load``; or what ``ch.watch`` saw of any torch model, or an opened trace.
        text: what to read; a trace has its own. An encoder-decoder reads it with its encoder and
            writes by itself; with a ``source``, ``text`` is what its decoder reads.
        word, head: what to show first ("they"; "L16H5", "L16", "all"); otherwise chosen by a rule
            (``.why`` says it, :mod:`clearhead.explain.telling` has it).
        generate: how many tokens to write after the text; ``.generated`` has what each looked at.
        aids: reading aids (:class:`clearhead.explain.pictures.Aids`): ``words=False`` for tokens,
            ``hide="nothing"``, ``colour="log"``, ``pool="mean"``, ``measure="weight·‖v‖"``.
    """
    made = make_look(
        model, text, source=source, word=word, head=head, generate=generate, aids=_aids(aids)
    )
    return Shown(made)


def steps(
    seen: Any,
    head: str | None = None,
    word: int | str | None = None,
    *,
    text: str | None = None,
) -> Shown:
    """The textbook's table of one query: every step from q and k to the result.

        ch.steps(seen, "L16H5", "they")
        ch.steps("selfish")                     # a worked example: selfish, batch or action

    ``seen`` is a trace, a look, or a model with its ``text``. A head or word that is not given is
    chosen as in ``ch.look``.
    """
    if isinstance(seen, str):
        return Shown(worked_example(seen)[0])
    found = seen.insight if isinstance(seen, Shown) else seen
    if not isinstance(found, Look):
        found = make_look(found, text, head=head, word=word)
    return Shown(found.steps(head, word))


def diff(
    before: Any,
    after: Any,
    *,
    text: str | None = None,
    head: str | None = None,
    **aids: Any,
) -> Shown:
    """What changed most between two looks, two heads, two models or two traces.

    ch.diff(ch.look(model, "…"), ch.look(model, "…"))        # two texts
    ch.diff(look.head("L16H5"), look.head("L16H3"))          # two heads
    ch.diff(model, finetuned, text="…")                      # two models, two checkpoints
    """
    sides = [_side(given, text, head, aids) for given in (before, after)]
    names = tuple(given.name if isinstance(given, Loaded) else "" for given in (before, after))
    return Shown(make_difference(*sides, names=names))  # type: ignore[arg-type]


def _side(given: Any, text: str | None, head: str | None, aids: dict[str, Any]) -> Any:
    found = given.insight if isinstance(given, Shown) else given
    if isinstance(found, Look | HeadPicture):
        return found
    if not isinstance(found, Loaded | Seen):
        raise InputError(
            f"diff compares looks, heads, models or traces; got {type(found).__name__}.",
            hint="two texts: ch.diff(ch.look(model, one), ch.look(model, other)).",
        )
    if isinstance(found, Loaded) and text is None:
        raise InputError("two models are compared on a text: ch.diff(one, other, text=…).")
    return make_look(
        found, text if isinstance(found, Loaded) else None, head=head, aids=_aids(aids)
    )


def _aids(given: dict[str, Any]) -> Aids:
    """Reading aids from keyword arguments, checked."""
    allowed = {
        "words": (True, False),
        "hide": ("first and special", "special", "nothing"),
        "colour": ("linear", "log"),
        "pool": ("max", "mean", "sum"),
        "measure": ("weight", "weight·‖v‖"),
    }
    for name, value in given.items():
        if name not in allowed:
            raise InputError(f"there is no option {name}; reading aids are {', '.join(allowed)}.")
        if value not in allowed[name]:
            choices = ", ".join(map(repr, allowed[name]))
            raise InputError(f"{name} must be one of {choices}; got {value!r}.")
    return Aids(**given)
