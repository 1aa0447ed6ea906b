"""The torch operations between query · key and the output, and what each does to the scores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from clearhead.trace.watching.doors.unfused import Step, Trail, UnfusedDoor
from clearhead.trace.watching.mask_rules import MASKED


def _product(door: UnfusedDoor, result: Tensor, args: tuple[Any, ...], _: Any) -> Trail | None:
    if len(args) < 2 or not isinstance(args[1], Tensor):
        return None
    left, right = args[0], args[1]
    trail = door.trail(left)
    if trail is not None and trail.weights is not None:
        door.finish(trail, right, result)
        return None
    if trail is None and left.ndim == right.ndim and left.ndim in (3, 4):
        return Trail(left, right.transpose(-1, -2))
    return None


def _sum_and_product(
    _door: UnfusedDoor, _result: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Trail | None:
    given = [*args, *(kwargs[name] for name in ("batch1", "batch2") if name in kwargs)]
    if len(given) != 3 or given[0].ndim != 3:
        return None
    added, left, right = given
    beta, alpha = kwargs.get("beta", 1), kwargs.get("alpha", 1)
    trail = Trail(left, right.transpose(-1, -2), scale=float(alpha))
    return trail if beta == 0 else replace(trail, added=(added if beta == 1 else added * beta,))


def _einsum(door: UnfusedDoor, result: Tensor, args: tuple[Any, ...], _: Any) -> Trail | None:
    operands = args[1] if len(args) == 2 and isinstance(args[1], list | tuple) else args[1:]
    if not isinstance(args[0], str) or len(operands) != 2:
        return None
    inputs, _arrow, out = args[0].replace(" ", "").partition("->")
    left, _comma, right = inputs.partition(",")
    if "." in args[0] or len(out) != 4 or not len(left) == len(right) == 4:
        return None
    first, second = operands
    trail = door.trail(first)
    if trail is not None and trail.weights is not None:
        queries, keys = left[-2], left[-1]
        width = next((sign for sign in right if sign not in left), None)
        if width is None or keys in out or keys not in right:
            return None
        value = second.permute(*(right.index(sign) for sign in (*left[:2], keys, width)))
        output = result.permute(*(out.index(sign) for sign in (*left[:2], queries, width)))
        door.finish(trail, value, output)
        return None
    width = next((sign for sign in left if sign in right and sign not in out), None)
    if width is None or out[-2] not in left or out[-1] not in right:
        return None
    wanted = ((left, out[:2] + out[-2] + width), (right, out[:2] + out[-1] + width))
    if any(set(have) != set(want) for have, want in wanted):
        return None
    query, key = (
        part.permute(*(have.index(sign) for sign in want))
        for part, (have, want) in zip((first, second), wanted, strict=True)
    )
    return Trail(query, key)


def _times(door: UnfusedDoor, _result: Tensor, args: tuple[Any, ...], _: Any) -> Trail | None:
    trail, factor = _operand(door, args)
    number = _number(factor)
    if trail is None or number is None or trail.weights is not None or number <= 0:
        return None
    return _scaled(trail, number)


def _divided(door: UnfusedDoor, _result: Tensor, args: tuple[Any, ...], _: Any) -> Trail | None:
    trail, number = door.trail(args[0]), _number(args[1]) if len(args) > 1 else None
    if trail is None or number is None or trail.weights is not None or number <= 0:
        return None
    return _scaled(trail, 1 / number)


def _scaled(trail: Trail, number: float) -> Trail:
    added = tuple(part * number for part in trail.added)
    return replace(trail, scale=trail.scale * number, added=added)


def _plus(
    door: UnfusedDoor, _result: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Trail | None:
    trail, other = _operand(door, args)
    if trail is None or trail.weights is not None or kwargs.get("alpha", 1) != 1:
        return None
    if not isinstance(other, Tensor) or other.numel() == 1:
        return trail  # the same for all keys: softmax does not notice
    return replace(trail, added=(*trail.added, other))


def _minus(
    door: UnfusedDoor, _result: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Trail | None:
    trail = door.trail(args[0])
    if trail is None or trail.weights is not None or len(args) < 2 or kwargs:
        return None
    other = args[1]
    if not isinstance(other, Tensor) or other.shape[-1:] in (torch.Size([1]), torch.Size([])):
        return trail  # the row's maximum, say
    return replace(trail, added=(*trail.added, -other))


def _filled(
    door: UnfusedDoor, _result: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Trail | None:
    trail = door.trail(args[0])
    hidden = args[1] if len(args) > 1 else kwargs.get("mask")
    number = _number(args[2] if len(args) > 2 else kwargs.get("value"))
    if trail is None or number is None or not isinstance(hidden, Tensor):
        return None
    if trail.weights is not None:
        return trail if number == 0 else None
    blind = number == 0 and hidden.shape[-1] == 1  # a harmless row for one that sees nothing
    if blind:
        return trail
    return replace(trail, hidden=(*trail.hidden, hidden)) if number < MASKED else None


def _where(door: UnfusedDoor, _result: Tensor, args: tuple[Any, ...], _: Any) -> Trail | None:
    if len(args) != 3:
        return None
    trail, number = door.trail(args[1]), _number(args[2])
    if trail is None or number is None or trail.weights is not None or number >= MASKED:
        return None
    return replace(trail, hidden=(*trail.hidden, ~args[0]))


def _at_least(door: UnfusedDoor, _result: Tensor, args: tuple[Any, ...], _: Any) -> Trail | None:
    """No score below the smallest number: what is hidden stays hidden."""
    trail, other = _operand(door, args)
    lowest = _number(other) if isinstance(other, Tensor) else None
    return trail if lowest is not None and lowest < MASKED else None


def _same(door: UnfusedDoor, _result: Tensor, args: tuple[Any, ...], _: Any) -> Trail | None:
    return door.trail(args[0])


def _reshaped(door: UnfusedDoor, result: Tensor, args: tuple[Any, ...], _: Any) -> Trail | None:
    trail, before = door.trail(args[0]), args[0].shape
    if trail is None or result.shape[-2:] != before[-2:] or result.ndim not in (3, 4):
        return None
    if result.ndim == 4 and len(before) == 3:
        return replace(trail, heads=result.shape[1])
    return trail


def _softmax(
    door: UnfusedDoor, result: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Trail | None:
    trail = door.trail(args[0])
    axis = kwargs.get("dim", args[1] if len(args) > 1 else None)
    if trail is None or trail.weights is not None or axis not in (-1, result.ndim - 1):
        return None
    return replace(trail, weights=result)


def _dropped(
    door: UnfusedDoor, _result: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Trail | None:
    trail = door.trail(args[0])
    share = kwargs.get("p", args[1] if len(args) > 1 else 0.5)
    training = kwargs.get("training", args[2] if len(args) > 2 else True)
    if trail is None or trail.weights is None or not training or share == 0:
        return trail if trail is not None and trail.weights is not None else None
    return replace(trail, dropout=float(share))


def _operand(door: UnfusedDoor, args: tuple[Any, ...]) -> tuple[Trail | None, Any]:
    if len(args) < 2:
        return None, None
    trail = door.trail(args[0])
    return (trail, args[1]) if trail is not None else (door.trail(args[1]), args[0])


def _number(given: Any) -> float | None:
    if isinstance(given, Tensor):
        return float(given) if given.numel() == 1 else None
    return float(given) if isinstance(given, int | float) else None


def _steps() -> dict[Any, Step]:
    """Each followed function of torch, by all the names under which torch reports its calls."""
    tables: list[tuple[Step, str]] = [
        (_product, "matmul bmm __matmul__"),
        (_sum_and_product, "baddbmm"),
        (_einsum, "einsum"),
        (_times, "mul mul_ multiply __mul__ __rmul__ __imul__"),
        (_divided, "div div_ divide true_divide __truediv__ __itruediv__"),
        (_plus, "add add_ __add__ __radd__ __iadd__"),
        (_minus, "sub sub_ __sub__ __isub__"),
        (_filled, "masked_fill masked_fill_"),
        (_where, "where"),
        (_at_least, "max maximum"),
        (_same, "to float half bfloat16 double type type_as contiguous clone nan_to_num detach"),
        (_reshaped, "view reshape unflatten flatten"),
        (_softmax, "softmax"),
        (_dropped, "dropout"),
    ]
    steps: dict[Any, Step] = {}
    for step, names in tables:
        for name in names.split():
            for home in (torch, Tensor, functional):
                function = getattr(home, name, None)
                if function is not None:
                    steps[function] = step
    return steps


STEPS = _steps()
