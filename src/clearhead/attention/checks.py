"""Checks of attention's arguments, and the errors that explain what is wrong."""

from __future__ import annotations

from typing import NoReturn

import torch
from torch import Tensor

from clearhead.errors import InputError, ShapeError
from clearhead.tensors import dense_tensor, same_device

FLOATS = frozenset((torch.float32, torch.float64, torch.bfloat16, torch.float16))


def fit(query: Tensor, key: Tensor, value: Tensor) -> bool:
    """True if query, key and value fit together. Quick: it runs before every call."""
    try:
        asks, keys, values = query.shape, key.shape, value.shape
        return (
            query.layout is key.layout is value.layout is torch.strided
            and len(asks) == len(keys) == len(values) >= 2
            and 0 < asks[-1] == keys[-1]
            and keys[-2] == values[-2]
            and (len(asks) == 2 or (keys[-3] == values[-3] != 0 and asks[-3] % keys[-3] == 0))
            and (asks[:-3] == keys[:-3] == values[:-3] or _broadcast(asks, keys, values))
            and query.dtype == key.dtype == value.dtype
            and query.dtype in FLOATS
            and query.device == key.device == value.device
        )
    except (AttributeError, RuntimeError):  # not tensors; or nested ones, which have no shape
        return False


def explain_misfit(query: Tensor, key: Tensor, value: Tensor) -> NoReturn:
    """Say why query, key and value do not go together."""
    tensors = (query, key, value)
    if not all(isinstance(given, Tensor) for given in tensors):
        kinds = ", ".join(type(given).__name__ for given in tensors)
        raise InputError(f"query, key and value must be torch tensors; got {kinds}.")
    for name, given in zip(("query", "key", "value"), tensors, strict=True):
        dense_tensor(f"{name} (as query, key and value)", given)
    shapes = f"query {tuple(query.shape)}, key {tuple(key.shape)}, value {tuple(value.shape)}"
    if not 2 <= query.ndim == key.ndim == value.ndim:
        raise ShapeError(
            "query, key and value must have the same number of axes, (…, head, query, key_dim) and "
            f"(…, kv_head, key, …); got {shapes}."
        )
    _explain_widths(query, key, value, shapes)
    if query.ndim > 2:
        _explain_heads(query, key, value, shapes)
    if not query.dtype == key.dtype == value.dtype or query.dtype not in FLOATS:
        raise InputError(
            "query, key and value must share one floating-point dtype; got "
            f"{query.dtype}, {key.dtype}, {value.dtype}.",
            hint="convert with .to(query.dtype), or run the model under one dtype.",
        )
    raise InputError(
        "query, key and value must be on one device; got "
        f"{query.device}, {key.device}, {value.device}."
    )


def _explain_widths(query: Tensor, key: Tensor, value: Tensor, shapes: str) -> None:
    if query.shape[-1] != key.shape[-1]:
        raise ShapeError(
            f"query and key must have the same width (key_dim); got {query.shape[-1]} and "
            f"{key.shape[-1]} in {shapes}."
        )
    if query.shape[-1] == 0:
        raise ShapeError(f"key_dim is 0, there is nothing to compare; got {shapes}.")
    if key.shape[-2] != value.shape[-2]:
        raise ShapeError(
            f"every key needs one value; got {key.shape[-2]} keys and {value.shape[-2]} values in "
            f"{shapes}."
        )


def _explain_heads(query: Tensor, key: Tensor, value: Tensor, shapes: str) -> None:
    heads, kv_heads = query.shape[-3], key.shape[-3]
    if kv_heads != value.shape[-3]:
        raise ShapeError(
            f"key and value must have the same number of heads; got {kv_heads} and "
            f"{value.shape[-3]} in {shapes}."
        )
    if kv_heads == 0 or heads % kv_heads:
        raise ShapeError(
            f"{heads} query heads cannot be shared out evenly over {kv_heads} key/value heads; got "
            f"{shapes}.",
            hint="axes are (…, head, query, key_dim): are the head and query axes swapped?",
        )
    if not _broadcast(query.shape, key.shape, value.shape):
        raise ShapeError(f"the axes before head (batch …) must be equal or 1; got {shapes}.")


def _broadcast(asks: torch.Size, keys: torch.Size, values: torch.Size) -> bool:
    return all(
        len({size for size in sizes if size != 1}) <= 1
        for sizes in zip(asks[:-3], keys[:-3], values[:-3], strict=True)
    )


def map_shape(name: str, given: Tensor, whole: tuple[int, ...]) -> None:
    """A mask or bias must be broadcastable to the whole map (…, head, query, key)."""
    dense_tensor(name, given)
    sizes = zip(reversed(given.shape), reversed(whole), strict=False)
    if not 1 <= given.ndim <= len(whole) or not all(have in (1, want) for have, want in sizes):
        raise ShapeError(
            f"{name} must be broadcastable to (…, head, query, key) = {whole}; got "
            f"{tuple(given.shape)}.",
            hint=f"a (batch, key) padding {name} needs {name}[:, None, None, :].",
        )


def check_bias(bias: Tensor) -> None:
    """A bias is a number to add."""
    if isinstance(bias, Tensor) and not bias.is_floating_point():
        raise InputError(
            f"bias is added to the scores and must be floating point; got {bias.dtype}.",
            hint="a boolean who-may-attend goes into mask=.",
        )


def check_sinks(sinks: Tensor, *, heads: int, device: torch.device) -> None:
    """Sinks are one number for each query head."""
    if dense_tensor("sinks", sinks).shape != (heads,):
        raise ShapeError(
            f"sinks must be one number for each query head, ({heads},); got {tuple(sinks.shape)}."
        )
    if not sinks.is_floating_point():
        raise InputError(f"sinks must be floating point; got {sinks.dtype}.")
    same_device("sinks", sinks, device)
