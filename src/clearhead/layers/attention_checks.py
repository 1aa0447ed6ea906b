"""What an attention layer refuses: options that contradict each other, states that do not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from clearhead.arguments import real_number, shown, whole_number
from clearhead.attention.cache import KVCache
from clearhead.attention.call import LARGEST
from clearhead.attention.rotary import MOST_WIDTH, Rotary, Rotation
from clearhead.errors import ConfigError, InputError, ShapeError
from clearhead.layers.ragged import Ragged
from clearhead.tensors import dense_tensor, same_device

if TYPE_CHECKING:
    from clearhead.layers.multi_head import MultiHeadAttention


def a_width(name: str, given: object) -> int:
    """A width or a number of heads.

    Raises:
        ConfigError: it is no whole number, below 1, or beyond every model.
    """
    return whole_number(name, given, least=1, most=MOST_WIDTH, error=ConfigError)


def head_width(model: int, heads: int) -> int:
    """The width of each head where none is given: model / heads.

    Raises:
        ConfigError: the heads would not be equally wide.
    """
    if model % heads:
        raise ConfigError(
            f"a model width of {model} cannot be divided into {heads} heads of equal width.",
            hint="choose heads that divide it, or give key_dim.",
        )
    return model // heads


def head_norm(make: Callable[[int], nn.Module] | None, width: int) -> nn.Module | None:
    """The normalisation of each head's queries or keys.

    Raises:
        ConfigError: ``make`` does not make a module.
    """
    made = None if make is None else make(width)
    if make is not None and not isinstance(made, nn.Module):
        raise ConfigError(f"norm must make a module of a width; got {type(made).__name__}.")
    return made


def checked_numbers(
    dropout: object, window: object, scale: object, softcap: object
) -> tuple[float, int | None, float | None, float | None]:
    """The four numbers of a layer, as numbers within their ranges.

    Raises:
        ConfigError: one of them is no number or out of its range.
    """
    share = real_number("dropout", dropout, least=0, error=ConfigError)
    if not share < 1.0:
        raise ConfigError(f"dropout is a share from 0 up to below 1; got {share}.")
    return (
        share,
        None if window is None else whole_number("window", window, least=1, error=ConfigError),
        None if scale is None
        else real_number("scale", scale, least=-LARGEST, most=LARGEST, error=ConfigError),
        None if softcap is None
        else real_number("softcap", softcap, above=0, most=LARGEST, error=ConfigError),
    )  # fmt: skip


def check_options(layer: MultiHeadAttention, norm: object) -> None:
    """Refuse a layer whose options do not fit each other.

    Raises:
        ConfigError: says which ones.
    """
    if layer.heads % layer.kv_heads:
        raise ConfigError(
            f"{layer.heads} query heads cannot be shared out evenly over {layer.kv_heads} "
            "key/value heads; heads must be a multiple of kv_heads."
        )
    for name, given in (("activation", layer.activation), ("norm", norm)):
        if given is not None and not callable(given):
            raise ConfigError(f"{name} must be a function; got {shown(given)}.")
    if layer.rotary is not None and not isinstance(layer.rotary, Rotary):
        raise ConfigError(f"rotary must be a Rotary; got {shown(layer.rotary)}.")
    if layer.rotary is not None and layer.rotary.width > layer.key_dim:
        raise ConfigError(
            f"rotary turns {layer.rotary.width} entries, but a head has only {layer.key_dim}."
        )
    if layer.crossing and (layer.causal or layer.rotary is not None):
        raise ConfigError(
            "cross-attention looks at another sequence: causal and rotary, which compare "
            "positions within one, have no meaning there."
        )


def check_call(
    layer: MultiHeadAttention,
    states: Tensor,
    context: Tensor | None,
    cache: KVCache | None,
    counts: Tensor | None,
) -> None:
    """Refuse states, a context, a cache or counts that do not fit the layer.

    Raises:
        InputError: something is there that must not be, or the other way round.
        ShapeError: a tensor has another shape.
    """
    _check_states(layer, "states", states, layer.query.in_features, "query")
    if cache is not None and not isinstance(cache, KVCache):
        raise InputError(f"cache must be a KVCache; got {type(cache).__name__}.")
    if context is not None and not layer.crossing:
        raise InputError(
            "this is self-attention, it takes no context.",
            hint="cross-attention is MultiHeadAttention(…, context=width of the context).",
        )
    if layer.crossing and context is None and (cache is None or not cache.length):
        raise InputError("cross-attention needs the context to attend to; got none.")
    if context is not None:
        _check_states(layer, "context", context, layer.key.in_features, "key")
    if counts is not None and (cache is None or layer.crossing):
        raise InputError(
            "counts says how far the cache of self-attention grows in each row; here is none.",
            hint="which keys are real is said by mask=masks.lengths(counts).",
        )


def check_rows(states: Tensor, rotation: Rotation | None, ragged: Ragged | None) -> None:
    """Refuse a rotation that has not one row for each query.

    Raises:
        InputError: an argument is of another type.
        ShapeError: the rotation has another number of rows.
    """
    if ragged is not None and not isinstance(ragged, Ragged):
        raise InputError(f"ragged must be a Ragged; got {type(ragged).__name__}.")
    if rotation is None:
        return
    if not isinstance(rotation, Rotation):
        raise InputError(
            f"rotation must be what rotary.at(positions) gives; got {type(rotation).__name__}."
        )
    queries = states.shape[1] if ragged is None else ragged.width
    for part in rotation:
        if dense_tensor("rotation", part).ndim < 2 or part.shape[-2] != queries:
            raise ShapeError(
                f"rotation must have a row for each of {queries} queries; got {tuple(part.shape)}."
            )


def _check_states(
    layer: MultiHeadAttention, name: str, given: Tensor, features: int, rows: str
) -> None:
    """States are numbers of the layer's own type; autocast brings them to it."""
    weight = layer.query.weight
    same_device(name, dense_tensor(name, given), weight.device)
    if given.dtype != weight.dtype and not (
        given.is_floating_point() and torch.is_autocast_enabled(weight.device.type)
    ):
        raise InputError(
            f"{name} must be {weight.dtype}, as the layer's weights are; got {given.dtype}.",
            hint="convert with .to(…): the states, or the layer.",
        )
    if given.ndim != 3 or given.shape[2] != features:
        raise ShapeError(f"{name} must be (batch, {rows}, {features}); got {tuple(given.shape)}.")
