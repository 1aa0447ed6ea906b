"""Places in a model that an intervention can change, by name.

``L23H4`` is a head, ``L23`` all heads of a layer, ``L23F`` its feed-forward layer. ``C`` stands
for cross-attention, ``E`` for the encoder of an encoder-decoder, as in names of heads everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from clearhead.arguments import about, several
from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.explain.interventions.outputs import EVERYTHING, Outputs
from clearhead.layers.block import Block
from clearhead.layers.feed_forward import FeedForward
from clearhead.layers.multi_head import MultiHeadAttention
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.models.stack import Stack
from clearhead.trace.head_name import parse_name, pick_heads

FEED_FORWARD = "F"


@dataclass(frozen=True, eq=False)
class Place:
    """Some heads of an attention layer, or a feed-forward layer (``heads`` is empty)."""

    name: str
    stack: Stack
    layer: MultiHeadAttention | FeedForward
    heads: tuple[int, ...]

    @property
    def attention(self) -> MultiHeadAttention:
        """The attention layer of heads."""
        assert isinstance(self.layer, MultiHeadAttention)
        return self.layer

    @property
    def outputs(self) -> Outputs:
        """Where the outputs can be read and changed."""
        return outputs_of(self.layer)

    @property
    def columns(self) -> tuple[slice, ...]:
        """The columns of the outputs that belong to this place, one slice for each head."""
        if not self.heads:
            return EVERYTHING
        return tuple(head_columns(self.attention, head) for head in self.heads)


def outputs_of(layer: MultiHeadAttention | FeedForward) -> Outputs:
    """The outputs of a layer: of its heads, side by side, or of a feed-forward layer."""
    if isinstance(layer, MultiHeadAttention):
        return Outputs(layer.output, joined=True)
    return Outputs(layer, joined=False)


def head_columns(attention: MultiHeadAttention, head: int) -> slice:
    """The columns of a head's output among those of all heads, as W_O reads them."""
    return slice(head * attention.value_dim, (head + 1) * attention.value_dim)


def places_of(
    loaded: Loaded, names: str | Sequence[str], argument: str = "heads"
) -> tuple[Place, ...]:
    """The places that some names mean."""
    listed = [names] if isinstance(names, str) else several(argument, names, "names of heads")
    if not listed:
        raise InputError(f"{argument} names no head: wanted L23H4, L23 (all its heads) or L23F.")
    layers = dict(layers_of(loaded))
    with about(argument):
        return tuple(_place(name, layers) for name in listed)


def layers_of(
    loaded: Loaded,
) -> Iterator[tuple[str, tuple[Stack, MultiHeadAttention | FeedForward]]]:
    """Every layer of a model that can be changed, by name."""
    model = loaded.model
    if isinstance(model, EncoderDecoder):
        stacks = {"E": model.encoder, "L": model.decoder}
    else:
        stacks = {"L": model.stack}
    for letter, stack in stacks.items():
        for number, block in enumerate(stack.blocks):
            assert isinstance(block, Block)
            yield f"{letter}{number}", (stack, block.attention)
            if block.cross_attention is not None:
                yield f"C{number}", (stack, block.cross_attention)
            yield f"{letter}{number}{FEED_FORWARD}", (stack, block.feed_forward)


def _place(
    name: object, layers: dict[str, tuple[Stack, MultiHeadAttention | FeedForward]]
) -> Place:
    if isinstance(name, str) and name.endswith(FEED_FORWARD) and name in layers:
        stack, layer = layers[name]
        return Place(name, stack, layer, ())
    wanted = name[:-1] if isinstance(name, str) and name.endswith(FEED_FORWARD) else name
    try:
        layer_name, chosen = parse_name(wanted)
    except InputError as error:
        raise InputError(error.message, hint=f"layers: {_listed(layers)}") from None
    if layer_name not in layers:
        raise InputError(
            f"{name}: this model has no layer {layer_name}.", hint=f"layers: {_listed(layers)}"
        )
    stack, layer = layers[layer_name]
    assert isinstance(layer, MultiHeadAttention)
    numbers = range(layer.heads)
    heads = tuple(numbers) if chosen is None else pick_heads(layer_name, numbers, chosen)
    return Place(str(name), stack, layer, heads)


def _listed(layers: Mapping[str, object]) -> str:
    attention = [name for name in layers if not name.endswith(FEED_FORWARD)]
    letters = dict.fromkeys(name[0] for name in attention)
    return ", ".join(
        f"{letter}0 … {letter}{sum(name[0] == letter for name in attention) - 1}"
        for letter in letters
    )
