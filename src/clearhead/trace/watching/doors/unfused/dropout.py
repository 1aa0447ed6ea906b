"""Dropout of weights: by torch's operation, or by a mask of zeros and ones."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from torch import Tensor

from clearhead.trace.watching.doors.unfused.operands import changed, same_shape, weights_of
from clearhead.trace.watching.doors.unfused.trail import Found, Source, Trail

if TYPE_CHECKING:
    from clearhead.trace.watching.doors.unfused.mode import UnfusedMode


def dropped(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], kwargs: Any) -> Found:
    """torch's own dropout."""
    trail = weights_of(mode, args[0])
    if trail is None:
        return None
    share = kwargs.get("p", args[1] if len(args) > 1 else 0.5)
    training = kwargs.get("train", args[2] if len(args) > 2 else True)
    if training is False or not share:
        return trail
    # Weights without a formula are kept as they are before dropout.
    if trail.opaque:
        return changed(mode, result, args)
    before = () if mode.writes else (Source(trail, args[0]),)
    return replace(trail, dropout=float(share), before=before)


def bernoulli(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], kwargs: Any) -> Found:
    """Dropout without gradients: a mask of zeros and ones that is multiplied with the weights."""
    share = args[1] if len(args) > 1 else kwargs.get("p")
    if isinstance(share, float):
        mode.noise[result.data_ptr()] = share
    return None


def dropped_by_hand(mode: UnfusedMode, trail: Trail, factor: Any) -> Trail | None:
    """A product with a mask of zeros and ones, or with one that is scaled already."""
    if not isinstance(factor, Tensor):
        return None
    kept = mode.noise.get(factor.data_ptr())
    if kept is None and same_shape(trail, factor):
        if bool((factor == 1).all()):
            return trail
        largest = float(factor.max())  # zeros and 1/(1 − share), drawn elsewhere
        if largest > 1 and bool(((factor == 0) | (factor == largest)).all()):
            kept = 1 / largest
    return None if kept is None else replace(trail, dropout=1 - kept)
