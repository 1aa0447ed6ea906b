"""Arithmetic on scores: scales, temperatures, caps, and numbers that are added."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from torch import Tensor

from clearhead.trace.watching.axis_digits import sizes_of
from clearhead.trace.watching.doors.unfused.by_hand import BY_HAND, note_outer
from clearhead.trace.watching.doors.unfused.dropout import dropped_by_hand
from clearhead.trace.watching.doors.unfused.operands import (
    changed,
    number_of,
    operand,
    part_of,
    same_shape,
    source_of,
)
from clearhead.trace.watching.doors.unfused.trail import Found, Part, Source, Trail
from clearhead.trace.watching.watchers import refuse

if TYPE_CHECKING:
    from clearhead.trace.watching.doors.unfused.mode import UnfusedMode


def times(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], _: Any) -> Found:
    """Scores or weights times something: a scale, a temperature, dropout, a gate."""
    trail, factor = operand(mode, args)
    if trail is None:
        note_outer(mode, result, args)
        return None
    if trail.kind in ("weights", "mixed"):
        if result.ndim > len(trail.label) or result.numel() > math.prod(sizes_of(trail.label)):
            refuse(BY_HAND)
            return None
        dropped = None if trail.opaque else dropped_by_hand(mode, trail, factor)
        if dropped is None:
            return changed(mode, result, args)
        weights = args[1] if factor is args[0] else args[0]
        return dropped if mode.writes else replace(dropped, before=(Source(trail, weights),))
    number = number_of(factor)
    if number is not None and trail.kind == "scores":
        return scaled(trail, number)
    return _row_factor(trail, result, factor)


def _row_factor(trail: Trail, result: Tensor, factor: Any) -> Trail | None:
    """Numbers for each row, such as a head's temperature, belong to the queries."""
    if not isinstance(factor, Tensor) or not same_shape(trail, result):
        return None
    per_row = factor.ndim == 0 or factor.shape[-1] == 1
    moved = any(each.label != trail.label for each in trail.added)  # they have other axes
    if not per_row or moved or trail.kind != "scores" or trail.capped is not None or trail.hidden:
        return replace(trail, opaque=True)
    part = part_of(factor, result, trail.label)
    added = tuple(Part(each.tensor * factor, each.label) for each in trail.added)
    return replace(trail, factors=(*trail.factors, part), added=added)


def divided(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], kwargs: Any) -> Found:
    """Scores divided by a number, or exponentials by their sum."""
    trail = mode.trail(args[0])
    if trail is None or len(args) < 2 or kwargs.get("rounding_mode") is not None:
        return None
    if trail.kind in ("weights", "mixed"):
        return changed(mode, result, args)
    if args[0].data_ptr() in mode.noise and not isinstance(args[1], Tensor):
        return None
    if trail.kind == "exp" and isinstance(args[1], Tensor):
        summed, rest = mode.sums.get(args[1].data_ptr(), (None, 0.0))
        if summed != source_of(trail):
            return None
        if rest and trail.shifted:  # its share differs from row to row
            return replace(trail, kind="weights", opaque=True)
        return replace(trail, kind="weights", rest=rest)
    number = number_of(args[1])
    if trail.kind == "scores" and number is not None and number != 0:
        return scaled(trail, 1 / number)
    if isinstance(args[1], Tensor) and trail.kind == "scores":
        return _row_factor(trail, result, args[1].reciprocal())
    return None


def scaled(trail: Trail, number: float) -> Trail:
    """Scores times a number."""
    if trail.hidden or number <= 0:
        return replace(trail, opaque=True)
    added = tuple(Part(part.tensor * number, part.label) for part in trail.added)
    if trail.capped is not None:
        return replace(trail, capped=trail.capped * number, added=added)
    return replace(trail, scale=trail.scale * number, added=added)


def tanh(mode: UnfusedMode, _result: Tensor, args: tuple[Any, ...], _: Any) -> Found:
    """The middle of a cap."""
    trail = mode.trail(args[0])
    if trail is None or trail.kind != "scores":
        return None
    if trail.added or trail.hidden or trail.factors or trail.capped is not None:
        return replace(trail, opaque=True)
    return replace(trail, capped=1.0)


def plus(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], kwargs: Any) -> Found:
    """Numbers that are added: a mask, a bias, something beside a sum of exponentials."""
    trail, other = operand(mode, args)
    if trail is None:
        _sum_with_rest(mode, result, args, kwargs)
        return None
    if trail.kind in ("weights", "mixed"):
        return changed(mode, result, args)
    if trail.kind != "scores":
        return None
    return _shifted(trail, result, other, float(kwargs.get("alpha", 1)))


def _sum_with_rest(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], kwargs: Any) -> None:
    """A number beside the sum of exponentials, as in softmax off by one."""
    for known, other in (args[:2], args[1::-1]):
        held = mode.sums.get(known.data_ptr()) if isinstance(known, Tensor) else None
        number = number_of(other)
        if held is not None and number is not None and number >= 0 and not kwargs:
            mode.sums[result.data_ptr()] = (held[0], held[1] + number)
            return


def minus(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], kwargs: Any) -> Found:
    """Numbers that are taken away."""
    trail, other = operand(mode, args)
    if trail is not None and trail.kind in ("weights", "mixed"):
        return changed(mode, result, args)
    if trail is None or trail.kind != "scores" or other is not args[1]:
        return None
    return _shifted(trail, result, other, -float(kwargs.get("alpha", 1)))


def _shifted(trail: Trail, result: Tensor, other: Any, sign: float) -> Trail | None:
    if not same_shape(trail, result):
        return None
    if not isinstance(other, Tensor) or other.ndim == 0 or other.shape[-1] == 1:
        return replace(trail, shifted=True)  # the same for all keys: softmax does not notice
    numbers = other if sign == 1 else other * sign
    return replace(trail, added=(*trail.added, part_of(numbers, result, trail.label)))
