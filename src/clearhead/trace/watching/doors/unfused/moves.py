"""Axes that are reshaped, permuted or put together."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from torch import Tensor

from clearhead.trace.watching.axis_digits import (
    Label,
    heads_joined,
    permuted,
    sizes_of,
    stacked,
    viewed,
)
from clearhead.trace.watching.doors.unfused.trail import Found, Pending, Trail

if TYPE_CHECKING:
    from clearhead.trace.watching.doors.unfused.mode import UnfusedMode


def same(mode: UnfusedMode, _result: Tensor, args: tuple[Any, ...], _: Any) -> Found:
    """The same numbers: a copy, another precision."""
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
        mode.calls.complete(entry)
        return None
    return entry


def _relabelled(label: Label, before: Tensor, result: Tensor, change: Any) -> Label | None:
    if sizes_of(label) != tuple(before.shape):
        return None
    if change is None:
        return viewed(label, tuple(result.shape))
    return permuted(label, change)


def view(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], _: Any) -> Found:
    """Other sizes of the same numbers."""
    return _moved(mode, result, args, None)


def permute(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], _: Any) -> Found:
    """Axes in another order."""
    order = tuple(place % result.ndim for place in args[1])
    return _moved(mode, result, args, order)


def transpose(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], _: Any) -> Found:
    """Two axes change places."""
    order = list(range(result.ndim))
    one, two = (args[1] % result.ndim, args[2] % result.ndim) if len(args) > 2 else (0, 1)
    order[one], order[two] = order[two], order[one]
    return _moved(mode, result, args, tuple(order))


def together(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], kwargs: Any) -> Found:
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
        return mode.calls.stack(found, label) if sizes_of(label) == tuple(result.shape) else None
    if axis in (-1, result.ndim - 1):
        mode.calls.join(found)
    return None


def expand(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], _: Any) -> Found:
    """Followed if nothing is repeated."""
    return mode.entry(args[0]) if result.shape == args[0].shape else None
