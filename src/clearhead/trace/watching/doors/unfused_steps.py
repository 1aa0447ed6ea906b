"""The operations between query · key and the output, and what each does to the scores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from clearhead.trace.watching.axis_digits import (
    Dim,
    Label,
    heads_joined,
    is_whole,
    label_of,
    permuted,
    sizes_of,
    stacked,
    viewed,
)
from clearhead.trace.watching.doors.unfused import Part, Pending, Source, Step, Trail, UnfusedMode
from clearhead.trace.watching.mask_rules import MASKED
from clearhead.trace.watching.watchers import explain

Found = Trail | Pending | None


def _product(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], _: Any) -> Found:
    left, right = args[0], args[1]
    mixed = _over_heads(mode, result, left, right)
    if mixed is not None:
        return mixed
    trail = mode.trail(left)
    if trail is not None and trail.kind in ("weights", "mixed"):
        return _second_product(mode, trail, left, right, result)
    return _first_product(left, right)


def _over_heads(mode: UnfusedMode, result: Tensor, left: Tensor, right: Tensor) -> Trail | None:
    """A product that sums over heads: talking heads, before the softmax or after it."""
    for tensor, place in ((left, -1), (right, -2)):
        trail = mode.trail(tensor)
        if trail is None or not _same_shape(trail, tensor) or len(trail.label) < 2:
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


def _linear(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], _: Any) -> Found:
    """addmm: a linear layer over heads, if the scores or weights have them last."""
    return _over_heads(mode, result, args[1], args[2])


def _convolution(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], _: Any) -> Found:
    """A convolution over maps, whose channels are the heads."""
    trail = mode.trail(args[0])
    if trail is None or not _same_shape(trail, args[0]) or result.ndim != 4:
        return None
    heads = trail.label[1]
    if any(digit.axis not in "zg" for digit in heads) or result.shape[2:] != args[0].shape[2:]:
        return None
    label = (trail.label[0], *label_of("g", (result.shape[1],)), *trail.label[2:])
    return _head_mixed(trail, args[0], label, heads)


def _changed(mode: UnfusedMode, result: Tensor, operands: tuple[Any, ...]) -> Trail | None:
    """Weights that are changed after the softmax, or combined with others.

    Derivatives do the like to them: where they are computed beside, nothing tells which is which.
    """
    if forward_ad._current_level >= 0:
        return None
    known = [(mode.trail(part), part) for part in operands if isinstance(part, Tensor)]
    trails = [trail for trail, _ in known if trail is not None and _same_shape(trail, result)]
    before: list[Source] = []
    for trail, tensor in known:
        if trail is not None and trail.kind == "mixed":
            before += trail.before
        elif trail is not None and trail.kind == "weights":
            if mode.writes and tensor is operands[0]:
                return None  # nothing has them any more
            before.append(Source(trail, tensor))
    if not before or not trails:
        return None
    names = {source.weights.data_ptr(): source for source in before}
    return replace(trails[0], kind="mixed", opaque=True, before=tuple(names.values()))


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
        return None
    if weights.ndim == 2:
        weights, value, label = weights[None], value[None], ((), *label)
        output = output[None]
    wide = (*label[:2], *label_of("d", (value.shape[2],)))
    return mode.finish(Pending(trail, weights, value, output, wide))


def _sum_and_product(
    mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Found:
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
    return replace(trail, added=(_part(numbers, result, trail.label),))


def _times(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], _: Any) -> Found:
    trail, factor = _operand(mode, args)
    if trail is None:
        return None
    if trail.kind in ("weights", "mixed"):
        dropped = None if trail.opaque else _dropped_by_hand(mode, trail, factor)
        return dropped or _changed(mode, result, args)
    number = _number(factor)
    if number is not None and trail.kind == "scores":
        return _scaled(trail, number)
    return _row_factor(trail, result, factor)


def _row_factor(trail: Trail, result: Tensor, factor: Any) -> Trail | None:
    """Numbers for each row, such as a head's temperature, belong to the queries."""
    if not isinstance(factor, Tensor) or not _same_shape(trail, result):
        return None
    per_row = factor.ndim == 0 or factor.shape[-1] == 1
    moved = any(each.label != trail.label for each in trail.added)  # they have other axes
    if not per_row or moved or trail.kind != "scores" or trail.capped is not None or trail.hidden:
        return replace(trail, opaque=True)
    part = _part(factor, result, trail.label)
    added = tuple(Part(each.tensor * factor, each.label) for each in trail.added)
    return replace(trail, factors=(*trail.factors, part), added=added)


def _divided(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], kwargs: Any) -> Found:
    trail = mode.trail(args[0])
    if trail is None or len(args) < 2 or kwargs.get("rounding_mode") is not None:
        return None
    if trail.kind in ("weights", "mixed"):
        return _changed(mode, result, args)
    if args[0].data_ptr() in mode.noise and not isinstance(args[1], Tensor):
        return None
    if trail.kind == "exp" and isinstance(args[1], Tensor):
        summed, rest = mode.sums.get(args[1].data_ptr(), (None, 0.0))
        if summed != _source(trail):
            return None
        if rest and trail.shifted:  # its share differs from row to row
            return replace(trail, kind="weights", opaque=True)
        return replace(trail, kind="weights", rest=rest)
    number = _number(args[1])
    if trail.kind == "scores" and number is not None and number != 0:
        return _scaled(trail, 1 / number)
    if isinstance(args[1], Tensor) and trail.kind == "scores":
        return _row_factor(trail, result, args[1].reciprocal())
    return None


def _scaled(trail: Trail, number: float) -> Trail:
    if trail.hidden or number <= 0:
        return replace(trail, opaque=True)
    added = tuple(Part(part.tensor * number, part.label) for part in trail.added)
    if trail.capped is not None:
        return replace(trail, capped=trail.capped * number, added=added)
    return replace(trail, scale=trail.scale * number, added=added)


def _tanh(mode: UnfusedMode, _result: Tensor, args: tuple[Any, ...], _: Any) -> Found:
    trail = mode.trail(args[0])
    if trail is None or trail.kind != "scores":
        return None
    if trail.added or trail.hidden or trail.factors or trail.capped is not None:
        return replace(trail, opaque=True)
    return replace(trail, capped=1.0)


def _plus(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], kwargs: Any) -> Found:
    trail, other = _operand(mode, args)
    if trail is None:
        _sum_with_rest(mode, result, args, kwargs)
        return None
    if trail.kind in ("weights", "mixed"):
        return _changed(mode, result, args)
    if trail.kind != "scores":
        return None
    return _shifted(trail, result, other, float(kwargs.get("alpha", 1)))


def _sum_with_rest(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], kwargs: Any) -> None:
    """A number beside the sum of exponentials, as in softmax off by one."""
    for known, other in (args[:2], args[1::-1]):
        held = mode.sums.get(known.data_ptr()) if isinstance(known, Tensor) else None
        number = _number(other)
        if held is not None and number is not None and number > 0 and not kwargs:
            mode.sums[result.data_ptr()] = (held[0], held[1] + number)
            return


def _minus(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], kwargs: Any) -> Found:
    trail, other = _operand(mode, args)
    if trail is not None and trail.kind in ("weights", "mixed"):
        return _changed(mode, result, args)
    if trail is None or trail.kind != "scores" or other is not args[1]:
        return None
    return _shifted(trail, result, other, -float(kwargs.get("alpha", 1)))


def _shifted(trail: Trail, result: Tensor, other: Any, sign: float) -> Trail | None:
    if not _same_shape(trail, result):
        return None
    if not isinstance(other, Tensor) or other.ndim == 0 or other.shape[-1] == 1:
        return replace(trail, shifted=True)  # the same for all keys: softmax does not notice
    numbers = other if sign == 1 else other * sign
    return replace(trail, added=(*trail.added, _part(numbers, result, trail.label)))


def _filled(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], kwargs: Any) -> Found:
    trail = mode.trail(args[0])
    hidden = args[1] if len(args) > 1 else kwargs.get("mask")
    number = _number(args[2] if len(args) > 2 else kwargs.get("value"))
    if trail is None or number is None or not isinstance(hidden, Tensor):
        return None
    if trail.kind == "weights":
        return trail  # what is multiplied with the values decides
    return _hide(trail, result, hidden, number)


def _hide(trail: Trail, result: Tensor, hidden: Tensor, number: float) -> Trail | None:
    if trail.kind != "scores" or not _same_shape(trail, result):
        return None
    if number == 0 and hidden.shape[-1] == 1:
        return trail  # a harmless row for one that sees nothing
    if number > MASKED or (trail.hidden and trail.fill != number):
        return replace(trail, opaque=True)
    part = _part(hidden, result, trail.label)
    return replace(trail, hidden=(*trail.hidden, part), fill=number)


def _assigned(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], _: Any) -> Found:
    """``scores[hidden] = number``."""
    trail, places = mode.trail(args[0]), args[1]
    number = _number(args[2]) if len(args) == 3 else None
    flags = len(places) == 1 and places[0] is not None and places[0].dtype == torch.bool
    if trail is None or not _same_shape(trail, result):
        return None
    if trail.kind in ("weights", "mixed"):
        return _changed(mode, result, args[:1])
    if number is None or not flags or places[0].shape != result.shape:
        return replace(trail, opaque=True) if trail.kind == "scores" else None
    return _hide(trail, result, places[0].clone(), number)


def _where(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], _: Any) -> Found:
    if len(args) != 3:
        return None
    for scores, other, shown in ((args[1], args[2], args[0]), (args[2], args[1], ~args[0])):
        trail = mode.trail(scores)
        if trail is None:
            continue
        if trail.kind == "weights":
            return trail
        number = _number(other)
        if number is not None:
            return _hide(trail, result, ~shown, number)
        return replace(trail, opaque=True) if _same_shape(trail, result) else None
    return None


def _at_least(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], kwargs: Any) -> Found:
    """No score below the smallest number: what is hidden stays hidden."""
    trail, other = _operand(mode, args)
    lowest = _number(kwargs.get("min", other))
    if trail is None or not _same_shape(trail, result):
        return None
    beyond = kwargs.get("max", args[2] if len(args) > 2 else None) is not None
    if lowest is not None and lowest < -1e30 and not beyond:
        return trail
    return replace(trail, opaque=True)


def _same(mode: UnfusedMode, _result: Tensor, args: tuple[Any, ...], _: Any) -> Found:
    return mode.entry(args[0])


def _moved(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], change: Any) -> Found:
    """A tensor on a trail whose axes are reshaped or permuted."""
    entry = mode.entry(args[0])
    if entry is None:
        return None
    label = entry.label if isinstance(entry, Trail) else (entry.joined or entry.label)
    moved = _relabelled(label, args[0], result, change)
    if moved is None or sizes_of(moved) != tuple(result.shape):
        return None
    if isinstance(entry, Trail):
        return replace(entry, label=moved)
    entry.joined = moved
    if heads_joined(moved):
        mode.complete(entry)
        return None
    return entry


def _relabelled(label: Label, before: Tensor, result: Tensor, change: Any) -> Label | None:
    if sizes_of(label) != tuple(before.shape):
        return None
    if change is None:
        return viewed(label, tuple(result.shape))
    return permuted(label, change)


def _view(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], _: Any) -> Found:
    return _moved(mode, result, args, None)


def _permute(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], _: Any) -> Found:
    order = tuple(place % result.ndim for place in args[1])
    return _moved(mode, result, args, order)


def _transpose(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], _: Any) -> Found:
    order = list(range(result.ndim))
    one, two = (args[1] % result.ndim, args[2] % result.ndim) if len(args) > 2 else (0, 1)
    order[one], order[two] = order[two], order[one]
    return _moved(mode, result, args, tuple(order))


def _together(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], kwargs: Any) -> Found:
    """Outputs side by side along their width, or stacked: heads that were computed one by one."""
    axis = kwargs.get("dim", args[1] if len(args) > 1 else 0)
    parts = [mode.entry(part) for part in args[0]] if isinstance(args[0], list | tuple) else []
    found = [part for part in parts if isinstance(part, Pending)]
    if len(found) < 2 or len(found) != len(parts):
        return None
    if result.ndim > args[0][0].ndim:
        labels = {part.joined or part.label for part in found}
        if len(labels) > 1:
            return None
        label = stacked(labels.pop(), axis % result.ndim, len(found))
        return mode.stack(found, label) if sizes_of(label) == tuple(result.shape) else None
    if axis in (-1, result.ndim - 1):
        mode.join(found)
    return None


def _expand(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], _: Any) -> Found:
    return mode.entry(args[0]) if result.shape == args[0].shape else None


IN_PIECES = "its scores are put together from blocks or windows"
OTHER_AXIS = "its softmax does not go over the keys of one query"


def _softmax(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], kwargs: Any) -> Found:
    trail = mode.trail(args[0])
    axis = kwargs.get("dim", args[1] if len(args) > 1 else None)
    if trail is None or trail.kind != "scores":
        _explain(IN_PIECES, result)
        return None
    last = axis in (-1, result.ndim - 1)
    if not last or not is_whole(trail.label[-1], "m", trail.key.shape[1]):
        _explain(OTHER_AXIS, result)
        return None
    return replace(trail, kind="weights")


def _explain(reason: str, result: Tensor) -> None:
    if result.ndim > 2:
        explain(reason)


def _log_softmax(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], kwargs: Any) -> Found:
    found = _softmax(mode, result, args, kwargs)
    return replace(found, kind="log") if isinstance(found, Trail) else None


def _exp(mode: UnfusedMode, _result: Tensor, args: tuple[Any, ...], _: Any) -> Found:
    trail = mode.trail(args[0])
    if trail is None or trail.kind not in ("scores", "log"):
        return None
    if not is_whole(trail.label[-1], "m", trail.key.shape[1]):
        return None
    return replace(trail, kind="exp" if trail.kind == "scores" else "weights")


def _row_sum(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], _: Any) -> Found:
    trail = mode.trail(args[0])
    if trail is not None and trail.kind == "exp" and result.shape[-1] == 1:
        mode.sums[result.data_ptr()] = (_source(trail), 0.0)
    return None


def _source(trail: Trail) -> Any:
    """What an exponential was taken of: two of the same scores are the same."""
    numbers = tuple(part.tensor.data_ptr() for part in (*trail.added, *trail.hidden))
    return (trail.query.data_ptr(), trail.key.data_ptr(), trail.scale, numbers)


def _dropped(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], kwargs: Any) -> Found:
    trail = mode.trail(args[0])
    if trail is None or trail.kind not in ("weights", "mixed"):
        return None
    share = kwargs.get("p", args[1] if len(args) > 1 else 0.5)
    training = kwargs.get("train", args[2] if len(args) > 2 else True)
    if training is False or not share:
        return trail
    # Weights without a formula are kept as they are before dropout.
    return _changed(mode, result, args) if trail.opaque else replace(trail, dropout=float(share))


def _bernoulli(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], kwargs: Any) -> Found:
    """Dropout without gradients: a mask of zeros and ones that is multiplied with the weights."""
    share = args[1] if len(args) > 1 else kwargs.get("p")
    if isinstance(share, float):
        mode.noise[result.data_ptr()] = share
    return None


def _dropped_by_hand(mode: UnfusedMode, trail: Trail, factor: Any) -> Trail | None:
    if not isinstance(factor, Tensor):
        return None
    kept = mode.noise.get(factor.data_ptr())
    if kept is None and _same_shape(trail, factor):
        if bool((factor == 1).all()):
            return trail
        largest = float(factor.max())  # zeros and 1/(1 − share), drawn elsewhere
        if largest > 1 and bool(((factor == 0) | (factor == largest)).all()):
            kept = 1 / largest
    return None if kept is None else replace(trail, dropout=1 - kept)


def opaque(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], _: Any) -> Found:
    """Any other operation: scores of the same shape are followed on, though not understood."""
    trail = mode.trail(args[0])
    if trail is None or not _same_shape(trail, result) or not result.is_floating_point():
        return None
    if trail.kind in ("weights", "mixed"):
        return _changed(mode, result, args)
    return replace(trail, opaque=True) if trail.kind == "scores" else None


def _operand(mode: UnfusedMode, args: tuple[Any, ...]) -> tuple[Trail | None, Any]:
    if len(args) < 2:
        return mode.trail(args[0]), None
    trail = mode.trail(args[0])
    return (trail, args[1]) if trail is not None else (mode.trail(args[1]), args[0])


def _same_shape(trail: Trail, result: Tensor) -> bool:
    return sizes_of(trail.label) == tuple(result.shape)


def _part(tensor: Tensor, result: Tensor, label: Label) -> Part:
    """Numbers that were broadcast to the scores, with as many axes as they have."""
    return Part(tensor[(None,) * (result.ndim - tensor.ndim)], label)


def _number(given: Any) -> float | None:
    if isinstance(given, Tensor):
        return float(given) if given.numel() == 1 else None
    return float(given) if isinstance(given, int | float) else None


def _steps() -> dict[Any, Step]:
    """Each followed operation of torch, with its variants that write in place."""
    table: list[tuple[Step, str]] = [
        (_product, "bmm mm"),
        (_sum_and_product, "baddbmm"),
        (_linear, "addmm"),
        (_convolution, "convolution"),
        (_times, "mul mul_ multiply"),
        (_divided, "div div_ true_divide"),
        (_plus, "add add_"),
        (_minus, "sub sub_"),
        (_tanh, "tanh tanh_"),
        (_filled, "masked_fill masked_fill_"),
        (_where, "where"),
        (_assigned, "index_put index_put_ _index_put_impl_"),
        (_at_least, "maximum clamp clamp_ clamp_min clamp_min_"),
        (_same, "_to_copy clone detach alias nan_to_num nan_to_num_ lift_fresh"),
        (_view, "view _unsafe_view unsqueeze squeeze _reshape_alias reshape"),
        (_permute, "permute"),
        (_transpose, "transpose t"),
        (_expand, "expand"),
        (_together, "cat stack"),
        (_softmax, "_softmax _safe_softmax"),
        (_log_softmax, "_log_softmax"),
        (_exp, "exp exp_"),
        (_row_sum, "sum"),
        (_dropped, "native_dropout dropout"),
        (_bernoulli, "bernoulli_ bernoulli"),
    ]
    return {
        getattr(torch.ops.aten, name): step
        for step, names in table
        for name in names.split()
        if hasattr(torch.ops.aten, name)
    }


STEPS = _steps()
MOVES = (_view, _permute, _transpose, _product, _together, _linear)  # they change what axes mean
