"""``patch``: run a model with some outputs taken from its run on another text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from clearhead.arguments import about, whole_number
from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.explain.interventions.changes import Change, in_force
from clearhead.explain.interventions.places import Place, places_of
from clearhead.explain.make_look import checked_text, evaluating, read_passage


@contextmanager
def patch(
    model: Loaded, donor: str, at: str | Sequence[str], *, position: int | None = None
) -> Iterator[None]:
    """Put outputs of another text in the place of the model's own while the block runs.

    Position by position: the output at token 4 of the donor replaces the one at token 4. So the two
    texts must have as many tokens as each other, unless one ``position`` is chosen.

        >>> import torch, clearhead as ch
        >>> from clearhead.checkpoints.load import Loaded
        >>> config = ch.ModelConfig(
        ...     kind="decoder", vocab=97, context=64, model=24, layers=2, heads=3, feed_forward=48
        ... )
        >>> from pathlib import Path
        >>> from clearhead.text.characters import CharacterTokenizer
        >>> letters = CharacterTokenizer("abc ")
        >>> loaded = Loaded("small", Path(), ch.Decoder(config).eval(), config, letters)
        >>> ids = torch.tensor([letters.encode("a b a")])
        >>> with ch.patch(loaded, "a c a", at=["L0", "L1H2"]):
        ...     logits = loaded.model(ids)

    Args:
        model: a decoder or encoder of ``ch.load``.
        donor: the text whose outputs are taken.
        at: "L23H4" for a head, "L23" for all heads of a layer, "L23F" for its feed-forward layer;
            or several of these.
        position: only at this token; otherwise at all of them.

    Yields:
        Nothing: inside the block the model itself is changed.

    Raises:
        InputError: there is no such head or layer; or the texts do not fit each other.
    """
    if not isinstance(model, Loaded):
        raise InputError(f"patch wants a model of ch.load; got {type(model).__name__}.")
    if model.config.kind == "encoder-decoder":
        raise InputError("patch is for decoders and encoders; this is an encoder-decoder.")
    if position is not None:
        whole_number("position", position, least=0)
    places = places_of(model, at, "at")
    with about("donor"):
        outputs = outputs_of(model, donor, places)
    with ExitStack() as hooks:
        for place, output in zip(places, outputs, strict=True):
            hooks.enter_context(place.outputs.changed_by(_change(place, output, position)))
            change = Change(place.name, "patched", place.heads, position)
            hooks.enter_context(in_force(place.layer, change))
        yield


def outputs_of(
    loaded: Loaded, text: str, places: Sequence[Place]
) -> list[Float[Tensor, "query width"]]:
    """What each place put out for a text: heads side by side, or a feed-forward layer's output."""
    kept: dict[int, Tensor] = {}

    def keep(number: int, outputs: Tensor) -> None:
        kept[number] = outputs[0].clone()

    ids = [token.id for token in read_passage(loaded, checked_text(text)).tokens]
    with ExitStack() as hooks, evaluating(loaded):
        for number, place in enumerate(places):
            hooks.enter_context(place.outputs.read_by(partial(keep, number)))
        loaded.model(torch.tensor([ids], device=next(loaded.model.parameters()).device))
    return [kept[number] for number in range(len(places))]


def _change(
    place: Place, donor: Float[Tensor, "query width"], position: int | None
) -> Callable[[Tensor], None]:
    def replace(outputs: Tensor) -> None:
        for columns in place.columns:
            _replace(outputs[..., columns], donor[:, columns], position, place.name)

    return replace


def _replace(
    own: Float[Tensor, "batch query width"],
    donor: Float[Tensor, "donated width"],
    position: int | None,
    name: str,
) -> None:
    many, donated = own.shape[1], donor.shape[0]
    if position is None:
        if many != donated:
            raise InputError(
                f"{name} is patched token by token, but the text has {many} tokens and the donor "
                f"{donated}.",
                hint="choose texts of equal length, or one position.",
            )
        own[:] = donor
        return
    if position >= min(many, donated):
        raise InputError(
            f"position {position} is not in both texts: the text has {many} tokens, the donor "
            f"{donated}."
        )
    own[:, position] = donor[position]
