"""A step that has nothing but other tensors than the steps of its layer before.

Most steps of a generation are that. Whether one is follows from a few comparisons, so that what the
caller and the kernel passed besides need not wait with its tensors: every object that is kept costs
when it is made, when the collector looks for garbage, and when it is read.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from clearhead.trace.watching.doors.sdpa import flash_call
from clearhead.trace.watching.module_stack import Frame
from clearhead.trace.watching.observed_call import ObservedCall
from clearhead.trace.watching.watchers import Calls

MORE = ("position_bias", "softcap", "s_aux", "cache")  # what else a function may be given


@dataclass(slots=True)
class Known:
    """A layer whose steps were understood, and what its last one had."""

    place: Frame
    fused: bool  # a kernel computed it, without a mask
    unfused: bool  # the model's function returned the weights, of plain scores
    scale: float
    dtype: torch.dtype | None
    function: Any = None  # of which it was seen what it computes

    @staticmethod
    def of(place: Frame, call: ObservedCall) -> Known:
        """The layer of a call."""
        if call.fused:
            fused = call.logsum is not None and call.mask is None
            return Known(place, fused, False, call.scale, call.query.dtype)
        plain = call.softcap is None and call.sinks is None
        own = call.weights is not None and call.unchecked and call.after_dropout
        return Known(place, False, plain and own, call.scale, call.dtype)


class BareStep(NamedTuple):
    """The tensors of a step. Nobody had written to keys, values and weights when it ran."""

    place: Frame
    forward: int
    scale: float
    query: Tensor
    key: Tensor
    value: Tensor
    output: Tensor
    logsum: Tensor | None
    weights: Tensor | None
    mask: Tensor | None
    softmaxes: int
    query_version: int
    mask_version: int

    alone: bool = False  # nobody looked at a kernel: ``output`` is to be compared

    @property
    def unchecked(self) -> bool:
        """True if what it has is still to be compared with what the formula gives."""
        return self.alone or self.weights is not None

    @property
    def swapped(self) -> bool:
        """True if ``output`` has the axes (batch, row, head, value_dim)."""
        return self.alone or self.weights is not None

    @property
    def unchanged(self) -> bool:
        """True if nobody wrote to its tensors since."""
        if self.key._version or self.value._version or self.query._version != self.query_version:
            return False
        if self.weights is not None and self.weights._version:
            return False
        return self.mask is None or self.mask._version == self.mask_version

    def call(self) -> ObservedCall:
        """The step in our form."""
        if self.weights is None:
            return ObservedCall(
                self.query,
                self.key,
                self.value,
                self.scale,
                self.output.transpose(1, 2) if self.alone else self.output,
                logsum=self.logsum,
                fused=True,
                unchecked=self.alone,
            )
        return ObservedCall(
            self.query,
            self.key,
            self.value,
            self.scale,
            self.output.transpose(1, 2),
            dtype=self.query.dtype,
            mask=self.mask,
            weights=self.weights,
            after_dropout=True,
            unchecked=True,
        )


def bare_step(
    known: Known, calls: Calls, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> BareStep | None:
    """A call of the attention interface, if it is such a step; None if there may be more to it."""
    if calls.others or len(args) > 5 or len(result) != 2:
        return None
    mask = args[4] if len(args) > 4 else kwargs.get("attention_mask")
    if args[2]._version or args[3]._version:
        return None
    if known.fused and mask is None:
        return _fused(known, calls, args)
    return _unfused(known, calls, result, args, kwargs, mask) if known.unfused else None


def alone_step(
    known: Known, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> BareStep:
    """A step of which nobody saw what ran inside. Its function is the one that was understood."""
    (_, query, key, value, *more), (output, weights) = args, result
    mask, mask_version = None, 0
    if known.unfused:
        mask = more[0] if more else kwargs.get("attention_mask")
        mask_version = 0 if mask is None else mask._version
        as_before = weights.dtype == output.dtype == known.dtype and weights.ndim == 4
        if not as_before or weights._version or weights.size(3) != key.size(2):
            raise TypeError("its function returned other weights than before")
    place = known.place
    if output.requires_grad:
        output = output.detach()
    parts = (
        *(place, place.owner.forward, known.scale),  # type: ignore[attr-defined]
        *(query, key, value, output.clone()),  # models may write to outputs at once
        *(None, weights, mask, known.unfused, query._version, mask_version, known.fused),
    )
    return tuple.__new__(BareStep, parts)


def own_function() -> Any:
    """What transformers itself calls torch's fused kernel with."""
    home = sys.modules.get("transformers.integrations.sdpa_attention")
    return getattr(home, "sdpa_attention_forward", None)


def _fused(known: Known, calls: Calls, args: tuple[Any, ...]) -> BareStep | None:
    """By what the kernel was given, and what it returned: dropout, a mask or causality are more."""
    if len(calls.kernels) != 1 or calls.softmaxes:
        return None
    describe, _, given, options, (output, logsum, *_) = calls.kernels[0]
    if given[1] is not args[2] or given[2] is not args[3] or describe is not flash_call:
        return None
    scale, query = options.get("scale"), given[0]
    if any(given[3:]) or len(options) > ("scale" in options) or query.dtype != known.dtype:
        return None
    if known.scale != (query.size(-1) ** -0.5 if scale is None else scale):
        return None
    place, version = known.place, query._version
    forward: int = place.owner.forward  # type: ignore[attr-defined]
    # Models may write to outputs at once.
    parts = (query, args[2], args[3], output.clone(), logsum, None, None)
    return BareStep(place, forward, known.scale, *parts, 0, version, 0)


def _unfused(
    known: Known,
    calls: Calls,
    result: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    mask: Tensor | None,
) -> BareStep | None:
    """By the weights that the model's function returned; they are compared with the formula's when
    many steps are put together."""
    (_, query, key, value), (output, weights) = args[:4], result
    if calls.kernels or not isinstance(weights, Tensor) or weights._version:
        return None
    for name in MORE:
        if kwargs.get(name) is not None:
            return None
    scale, kind, keys = kwargs.get("scaling"), known.dtype, key.size(2)
    if known.scale != (query.size(-1) ** -0.5 if scale is None else scale):
        return None
    if not query.ndim == key.ndim == weights.ndim == 4 or weights.size(3) != keys:
        return None
    if mask is not None and mask.size(-1) != keys:
        return None
    if not query.dtype == key.dtype == value.dtype == weights.dtype == output.dtype == kind:
        return None
    place, mask_version = known.place, 0 if mask is None else mask._version
    forward: int = place.owner.forward  # type: ignore[attr-defined]
    # Models may write to outputs at once.
    parts = (query, key, value, output.clone(), None, weights, mask)
    versions = (query._version, mask_version)
    return BareStep(place, forward, known.scale, *parts, calls.softmaxes, *versions)
