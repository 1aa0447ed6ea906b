"""Products: of queries and keys, of weights and values, or over heads."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from torch import Tensor

from clearhead.trace.watching.axis_digits import (
    Dim,
    Label,
    is_whole,
    label_of,
    permuted,
)
from clearhead.trace.watching.doors.unfused.operands import part_of, same_shape, weights_of
from clearhead.trace.watching.doors.unfused.trail import (
    OTHER_AXIS,
    Found,
    Pending,
    Source,
    Trail,
)
from clearhead.trace.watching.watchers import explain

if TYPE_CHECKING:
    from clearhead.trace.watching.doors.unfused.mode import UnfusedMode


def product(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], _: Any) -> Found:
    """The first product of attention, the second, or one over heads."""
    left, right = args[0], args[1]
    mixed = over_heads(mode, result, left, right)
    if mixed is not None:
        return mixed
    trail = weights_of(mode, left)
    if trail is not None:
        return _second_product(mode, trail, left, right, result)
    trail = weights_of(mode, right)
    if trail is not None and len(trail.label) == 3:
        return _turned_product(mode, trail, left, right, result)
    return _first_product(left, right)


def over_heads(mode: UnfusedMode, result: Tensor, left: Tensor, right: Tensor) -> Trail | None:
    """A product that sums over heads: talking heads, before the softmax or after it."""
    for tensor, place in ((left, -1), (right, -2)):
        trail = mode.trail(tensor)
        if trail is None or not same_shape(trail, tensor) or len(trail.label) < 2:
            continue
        heads = trail.label[place]
        if not heads or any(digit.axis not in "zg" for digit in heads):
            continue
        after = list(trail.label)
        after[place] = label_of("g", (result.shape[place],))[0]
        return _head_mixed(trail, tensor, tuple(after), heads)
    return None


def _head_mixed(trail: Trail, tensor: Tensor, label: Label, heads: Dim) -> Trail | None:
    after = replace(trail, label=label, opaque=True, talking=True)
    if trail.kind == "weights":
        return replace(after, kind="mixed", before=(Source(trail, tensor, heads),))
    return after if trail.kind in ("scores", "mixed") else None


def linear(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], _: Any) -> Found:
    """addmm: a linear layer over heads, if the scores or weights have them last."""
    return over_heads(mode, result, args[1], args[2])


def convolution(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], _: Any) -> Found:
    """A convolution over maps, whose channels are the heads."""
    trail = mode.trail(args[0])
    if trail is None or not same_shape(trail, args[0]) or result.ndim != 4:
        return None
    heads = trail.label[1]
    if any(digit.axis not in "zg" for digit in heads) or result.shape[2:] != args[0].shape[2:]:
        return None
    label = (trail.label[0], *label_of("g", (result.shape[1],)), *trail.label[2:])
    return _head_mixed(trail, args[0], label, heads)


def _first_product(left: Tensor, right: Tensor) -> Trail:
    if left.ndim == 2:
        left, right = left[None], right[None]
        label = label_of("znm", (1, left.shape[1], right.shape[2]))[1:]
    else:
        label = label_of("znm", (left.shape[0], left.shape[1], right.shape[2]))
    return Trail(left, right.transpose(1, 2), label)


def _second_product(
    mode: UnfusedMode, trail: Trail, weights: Tensor, value: Tensor, output: Tensor
) -> Found:
    label = trail.label
    if not is_whole(label[-1], "m", trail.key.shape[1]):
        explain(OTHER_AXIS)
        return None
    if weights.ndim == 2:
        weights, value, label = weights[None], value[None], ((), *label)
        output = output[None]
    wide = (*label[:2], *label_of("d", (value.shape[2],)))
    return mode.calls.finish(Pending(trail, weights, value, output, wide))


def _turned_product(
    mode: UnfusedMode, trail: Trail, value: Tensor, weights: Tensor, output: Tensor
) -> Found:
    """values · weights: all three are transposed."""
    keys = trail.key.shape[1]
    if keys == 1 or not is_whole(trail.label[1], "m", keys):
        return None
    turned = replace(trail, label=permuted(trail.label, (0, 2, 1)))
    parts = (tensor.transpose(1, 2) for tensor in (weights, value, output))
    found = _second_product(mode, turned, *parts)
    if isinstance(found, Pending):
        found.joined = permuted(found.label, (0, 2, 1))
    return found


def sum_and_product(
    mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Found:
    """``baddbmm``: a product whose numbers are added to others."""
    added, left, right = args[:3]
    beta, alpha = kwargs.get("beta", 1), kwargs.get("alpha", 1)
    if beta == 0:
        earlier = mode.trail(left)
        if earlier is not None and earlier.kind in ("weights", "mixed") and alpha == 1:
            return _second_product(mode, earlier, left, right, result)
    trail = replace(_first_product(left, right), scale=float(alpha))
    if beta == 0:
        return trail
    numbers = added if beta == 1 else added * beta
    return replace(trail, added=(part_of(numbers, result, trail.label),))
