"""Scores that become weights: softmax, log_softmax, or exponentials and their sum."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from torch import Tensor

from clearhead.trace.watching.axis_digits import Label, is_whole
from clearhead.trace.watching.doors.unfused.arithmetic import scaled
from clearhead.trace.watching.doors.unfused.by_hand import note_sum, summed_by_hand
from clearhead.trace.watching.doors.unfused.operands import number_of, opaque, source_of
from clearhead.trace.watching.doors.unfused.trail import OTHER_AXIS, Found, Trail
from clearhead.trace.watching.watchers import explain

if TYPE_CHECKING:
    from clearhead.trace.watching.doors.unfused.mode import UnfusedMode


IN_PIECES = "its scores are no product, or are put together from blocks or windows"


def softmax(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], kwargs: Any) -> Found:
    """Over the keys: scores become weights."""
    trail = mode.trail(args[0])
    axis = kwargs.get("dim", args[1] if len(args) > 1 else None)
    if trail is None or trail.kind != "scores":
        if not summed_by_hand(mode, result):
            _explain(IN_PIECES, result)
        return None
    over = trail.label[axis] if isinstance(axis, int) else ()
    if over and over[0].axis == "n" and is_whole(over, "n", trail.query.shape[1]):
        return _turned(replace(trail, kind="weights"))
    if is_whole(over, "m", trail.key.shape[1]):
        return replace(trail, kind="weights")
    _explain(OTHER_AXIS, result)
    return None


def _turned(trail: Trail) -> Trail:
    """Keys · queries instead of queries · keys: the softmax goes over what was taken for rows."""

    def swapped(label: Label) -> Label:
        other = {"n": "m", "m": "n"}
        return tuple(
            tuple(digit._replace(axis=other.get(digit.axis, digit.axis)) for digit in dim)
            for dim in label
        )

    added, hidden, factors = (
        tuple(replace(part, label=swapped(part.label)) for part in group)
        for group in (trail.added, trail.hidden, trail.factors)
    )
    opaque = trail.opaque or bool(factors)  # they belonged to the rows, which are keys now
    label = swapped(trail.label)
    return replace(
        trail, query=trail.key, key=trail.query, label=label, added=added, hidden=hidden,
        factors=factors, opaque=opaque,
    )  # fmt: skip


def _explain(reason: str, result: Tensor) -> None:
    if result.ndim > 2:
        explain(reason)


def log_softmax(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], kwargs: Any) -> Found:
    """Their logarithms."""
    found = softmax(mode, result, args, kwargs)
    return replace(found, kind="log") if isinstance(found, Trail) else None


def exponential(mode: UnfusedMode, _result: Tensor, args: tuple[Any, ...], _: Any) -> Found:
    """Of scores, to be divided by their sum; or of logarithms."""
    trail = mode.trail(args[0])
    if trail is None or trail.kind not in ("scores", "log"):
        return None
    if not is_whole(trail.label[-1], "m", trail.key.shape[1]):
        return None
    return replace(trail, kind="exp" if trail.kind == "scores" else "weights")


def exponential_of_two(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], _: Any) -> Found:
    """``exp2``: of scores that were divided by ln 2, as a rule."""
    return _to_the_power(mode, result, 2.0, args[0])


def power(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], kwargs: Any) -> Found:
    """A number to the power of scores; any other power is no step that is known."""
    base = None if isinstance(args[0], Tensor) else number_of(args[0])
    if base is None or base <= 1:
        return opaque(mode, result, args, kwargs)
    return _to_the_power(mode, result, base, args[1])


def _to_the_power(mode: UnfusedMode, result: Tensor, base: float, scores: Any) -> Found:
    trail = mode.trail(scores)
    if trail is None or trail.kind != "scores":
        return None
    found = exponential(mode, result, (scores,), {})
    return scaled(found, math.log(base)) if isinstance(found, Trail) else None


def row_sum(mode: UnfusedMode, result: Tensor, args: tuple[Any, ...], _: Any) -> Found:
    """The sum of exponentials that they are divided by."""
    note_sum(mode, result, args[0])
    trail = mode.trail(args[0])
    if trail is not None and trail.kind == "exp" and result.shape[-1] == 1:
        mode.sums[result.data_ptr()] = (source_of(trail), 0.0)
    return None
