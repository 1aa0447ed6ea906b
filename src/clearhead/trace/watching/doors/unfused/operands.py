"""What the operations of a trail have in common: operands, shapes, numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from clearhead.trace.watching.axis_digits import (
    Label,
    is_whole,
    sizes_of,
)
from clearhead.trace.watching.doors.unfused.trail import Found, Part, Source, Trail

if TYPE_CHECKING:
    from clearhead.trace.watching.doors.unfused.mode import UnfusedMode


SUM_SLACK = 0.02  # of a row of weights: bfloat16 has two digits


def operand(mode: UnfusedMode, args: tuple[Any, ...]) -> tuple[Trail | None, Any]:
    """The trail of whichever operand has one, and the other operand."""
    if len(args) < 2:
        return mode.trail(args[0]), None
    trail = mode.trail(args[0])
    return (trail, args[1]) if trail is not None else (mode.trail(args[1]), args[0])


def same_shape(trail: Trail, result: Tensor) -> bool:
    """True if a result has the axes of a trail."""
    return sizes_of(trail.label) == tuple(result.shape)


def part_of(tensor: Tensor, result: Tensor, label: Label) -> Part:
    """Numbers that were broadcast to the scores, with as many axes as they have."""
    return Part(tensor[(None,) * (result.ndim - tensor.ndim)], label)


def number_of(given: Any) -> float | None:
    """A number, or a tensor that holds one; None for anything else."""
    if isinstance(given, Tensor):
        return float(given) if given.numel() == 1 else None
    return float(given) if isinstance(given, int | float) else None


def source_of(trail: Trail) -> Any:
    """What an exponential was taken of: two of the same scores are the same."""
    numbers = tuple(part.tensor.data_ptr() for part in (*trail.added, *trail.hidden))
    return (trail.query.data_ptr(), trail.key.data_ptr(), trail.scale, numbers)


def weights_of(mode: UnfusedMode, tensor: Tensor) -> Trail | None:
    """The trail of weights; exponentials are such, too, if their rows sum to 1 already.

    If they do not, by more than bfloat16 rounds, they are refused later, with the heads beside
    them: each head of a layer may be a product of its own.
    """
    trail = mode.trail(tensor)
    if trail is not None and trail.kind == "exp" and trail.shifted and same_shape(trail, tensor):
        sums = tensor.detach().sum(dim=_keys_axis(trail), dtype=torch.float32)
        near = bool((((sums - 1).abs() < SUM_SLACK) | sums.isnan()).all())
        return replace(trail, kind="weights", opaque=trail.opaque or not near)
    return trail if trail is not None and trail.kind in ("weights", "mixed") else None


def _keys_axis(trail: Trail) -> int:
    """The axis on which the keys of scores stand: the last one, or that before it, transposed."""
    keys = trail.key.shape[1]
    return -2 if keys > 1 and is_whole(trail.label[-2], "m", keys) else -1


def changed(mode: UnfusedMode, result: Tensor, operands: tuple[Any, ...]) -> Trail | None:
    """Weights that are changed after the softmax, or combined with others.

    Derivatives do the like to them: where they are computed beside, nothing tells which is which.
    """
    if forward_ad._current_level >= 0:
        return None
    known = [(mode.trail(part), part) for part in operands if isinstance(part, Tensor)]
    trails = [trail for trail, _ in known if trail is not None and same_shape(trail, result)]
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


def opaque(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], _: Any) -> Found:
    """Any other operation: scores of the same shape are followed on, though not understood."""
    trail = mode.trail(args[0])
    if trail is None or not same_shape(trail, result) or not result.is_floating_point():
        return None
    if trail.kind in ("weights", "mixed"):
        return changed(mode, result, args)
    return replace(trail, opaque=True) if trail.kind == "scores" else None
