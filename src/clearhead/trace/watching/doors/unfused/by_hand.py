"""Products that a model writes as a multiplication and a sum: they are named, not followed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor

from clearhead.trace.watching.doors.unfused.trail import weak_memory
from clearhead.trace.watching.watchers import refuse

if TYPE_CHECKING:
    from clearhead.trace.watching.doors.unfused.mode import UnfusedMode

BY_HAND = "it multiplies and sums instead of taking a matrix product"


def note_outer(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...]) -> None:
    """A multiplication in which both sides are repeated: every query with every key."""
    sizes = [part.numel() for part in args[:2] if isinstance(part, Tensor)]
    if len(sizes) == 2 and result.numel() > max(sizes) and min(sizes) > 1:
        mode.outer = [held for held in mode.outer if not held.expired()]
        mode.outer.append(weak_memory(result))


def note_sum(mode: UnfusedMode, result: Tensor, summed: Any) -> None:
    """The sum over the width, which makes scores of it."""
    if mode.outer and isinstance(summed, Tensor) and weak_memory(summed) in mode.outer:
        mode.hand_products.add(result.numel())


def summed_by_hand(mode: UnfusedMode, weights: Tensor) -> bool:
    """Say so, if scores of this size were multiplied and summed before."""
    if weights.ndim > 2 and weights.numel() in mode.hand_products:
        refuse(BY_HAND)
        return True
    return False
