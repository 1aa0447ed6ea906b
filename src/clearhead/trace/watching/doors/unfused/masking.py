"""Scores that are hidden: filled, assigned, chosen by a condition, or kept from below."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from clearhead.trace.watching.doors.unfused.operands import (
    changed,
    number_of,
    operand,
    part_of,
    same_shape,
)
from clearhead.trace.watching.doors.unfused.trail import Found, Trail
from clearhead.trace.watching.mask_rules import MASKED

if TYPE_CHECKING:
    from clearhead.trace.watching.doors.unfused.mode import UnfusedMode


def filled(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], kwargs: Any) -> Found:
    """``masked_fill``."""
    trail = mode.trail(args[0])
    hidden = args[1] if len(args) > 1 else kwargs.get("mask")
    number = number_of(args[2] if len(args) > 2 else kwargs.get("value"))
    if trail is None or number is None or not isinstance(hidden, Tensor):
        return None
    if trail.kind == "weights":
        return trail  # what is multiplied with the values decides
    return _hide(trail, result, hidden, number)


def _hide(trail: Trail, result: Tensor, hidden: Tensor, number: float) -> Trail | None:
    if trail.kind != "scores" or not same_shape(trail, result):
        return None
    if number == 0 and hidden.shape[-1] == 1:
        return trail  # a harmless row for one that sees nothing
    if number > MASKED or (trail.hidden and trail.fill != number):
        return replace(trail, opaque=True)
    part = part_of(hidden, result, trail.label)
    return replace(trail, hidden=(*trail.hidden, part), fill=number)


def assigned(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], _: Any) -> Found:
    """``scores[hidden] = number``."""
    trail, places = mode.trail(args[0]), args[1]
    number = number_of(args[2]) if len(args) == 3 else None
    flags = len(places) == 1 and places[0] is not None and places[0].dtype == torch.bool
    if trail is None or not same_shape(trail, result):
        return None
    if trail.kind in ("weights", "mixed"):
        return changed(mode, result, args[:1])
    if number is None or not flags or places[0].shape != result.shape:
        return replace(trail, opaque=True) if trail.kind == "scores" else None
    return _hide(trail, result, places[0].clone(), number)


def where(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], _: Any) -> Found:
    """A condition chooses between scores and a number."""
    if len(args) != 3:
        return None
    for scores, other, shown in ((args[1], args[2], args[0]), (args[2], args[1], ~args[0])):
        trail = mode.trail(scores)
        if trail is None:
            continue
        if trail.kind == "weights":
            return trail
        number = number_of(other)
        if number is not None:
            return _hide(trail, result, ~shown, number)
        return replace(trail, opaque=True) if same_shape(trail, result) else None
    return None


def at_least(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], kwargs: Any) -> Found:
    """No score below the smallest number: what is hidden stays hidden."""
    trail, other = operand(mode, args)
    lowest = number_of(kwargs.get("min", other))
    if trail is None or not same_shape(trail, result):
        return None
    beyond = kwargs.get("max", args[2] if len(args) > 2 else None) is not None
    if lowest is not None and lowest < -1e30 and not beyond:
        return trail
    return replace(trail, opaque=True)
