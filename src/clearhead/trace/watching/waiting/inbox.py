"""Calls that are put down as they came, and read later.

In a generation every layer runs once for each token, and what ``watch`` does between two layers
costs more than the same work at a quieter moment: the processor has to fetch code and data for it
again and again. So once a step of a layer was understood (``step_buffer``), the next ones are put
into an inbox, with the version counters of their tensors, and read many at a time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from clearhead.trace.watching.doors.sdpa import flash_call
from clearhead.trace.watching.module_stack import Frame, running_frame
from clearhead.trace.watching.observed_call import ObservedCall
from clearhead.trace.watching.watchers import Calls, Kernel

_transform = torch._C._functorch.peek_interpreter_stack
_backward = torch._C._current_graph_task_id  # gradient checkpointing runs the forward again
MOST_LETTERS = 64  # of each layer
MOST_BYTES = 16 << 20


class Letter(NamedTuple):
    """One call of the attention interface of transformers, unread."""

    place: Frame
    forward: int
    calls: Calls  # what the kernels computed inside of it
    result: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    versions: tuple[int, ...]

    @property
    def unchanged(self) -> bool:
        """True if nobody wrote to its tensors since."""
        return self.versions == _versions(self.result, self.args, self.kwargs)


def like_before(before: ObservedCall, letter: Letter) -> ObservedCall | None:
    """A call that has nothing but other tensors than its layer's step before; None if there may be
    more to it."""
    if letter.calls.others or len(letter.args) > 5 or len(letter.result) != 2:
        return None
    return _like_fused(before, letter) if before.fused else _like_unfused(before, letter)


def _like_fused(before: ObservedCall, letter: Letter) -> ObservedCall | None:
    """By what the kernel was given, and what it returned."""
    kernels, args = letter.calls.kernels, letter.args
    if len(kernels) != 1 or before.logsum is None:
        return None
    if _mask_of(args, letter.kwargs) is not None or before.mask is not None:
        return None
    kernel = kernels[0]
    query, key, value = kernel.args[:3]
    plain = key is args[2] and value is args[3] and _is_bare(kernel, before.scale)
    if not plain or query.dtype != before.query.dtype:
        return None
    output, logsum = kernel.result[0], kernel.result[1]
    return ObservedCall(query, key, value, before.scale, output, logsum=logsum, fused=True)


def _like_unfused(before: ObservedCall, letter: Letter) -> ObservedCall | None:
    """By the weights that the model's function returned; they are compared with the formula's when
    many steps are put together."""
    args, kwargs, (output, weights) = letter.args, letter.kwargs, letter.result
    _, query, key, value = args[:4]
    if letter.calls.kernels or before.weights is None or not before.unchecked:
        return None
    if not before.after_dropout or before.softcap is not None or before.sinks is not None:
        return None
    if any(kwargs.get(name) is not None for name in ("position_bias", "softcap", "s_aux")):
        return None
    scale, mask = kwargs.get("scaling"), _mask_of(args, kwargs)
    if before.scale != (query.shape[-1] ** -0.5 if scale is None else scale):
        return None
    if not isinstance(weights, Tensor) or not query.ndim == key.ndim == weights.ndim == 4:
        return None
    keys, kind = key.size(2), before.dtype
    if weights.size(3) != keys or (mask is not None and mask.size(-1) != keys):
        return None
    if any(part.dtype != kind for part in (query, key, value, weights, output)):
        return None
    return ObservedCall(
        query,
        key,
        value,
        before.scale,
        output.transpose(1, 2),
        dtype=kind,
        mask=mask,
        weights=weights,
        after_dropout=True,
        unchecked=True,
    )


def _mask_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor | None:
    return args[4] if len(args) > 4 else kwargs.get("attention_mask")


def _is_bare(kernel: Kernel, scale: float) -> bool:
    """True if a kernel was called with this scale, without dropout, mask or causality."""
    given = dict(zip(kernel.names[3:], kernel.args[3:], strict=False)) | kernel.kwargs
    given_scale = given.pop("scale", None)
    same = scale == (kernel.args[0].shape[-1] ** -0.5 if given_scale is None else given_scale)
    return same and kernel.describe is flash_call and not any(given.values())


class Inbox:
    """The unread calls of one watch, in the order in which they ran."""

    def __init__(self) -> None:
        self.known: dict[int, Frame] = {}  # by module: layers whose steps were understood before
        self.letters: list[Letter] = []
        self._bytes = 0
        self._latest: dict[int, tuple[Tensor, Tensor]] = {}  # keys of a kernel, and of the caller

    def takes(self, args: tuple[Any, ...]) -> bool:
        """True if a call may wait: a step of a layer that is known, run as it was before."""
        place = self.known.get(id(args[0])) if len(args) > 3 else None
        if place is None or args[1].size(2) != 1 or args[0].training:
            return False
        if running_frame() is not place or _transform() is not None:
            return False
        return _backward() == -1

    def put(self, calls: Calls, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Put down a call."""
        place, key = self.known[id(args[0])], args[2]
        forward: int = place.owner.forward  # type: ignore[attr-defined]
        if len(calls.kernels) == 1:
            self._without_copies(calls, args)
        else:  # models may write to outputs at once
            result = (result[0].clone(), *result[1:])
        versions = _versions(result, args, kwargs)
        self.letters.append(Letter(place, forward, calls, result, args, kwargs, versions))
        self._bytes += 2 * key.nbytes

    @property
    def full(self) -> bool:
        """True if it should be read."""
        return len(self.letters) >= MOST_LETTERS * len(self.known) or self._bytes >= MOST_BYTES

    def empty(self) -> list[Letter]:
        """All letters; those of layers whose kernels got other keys than their callers had go by
        themselves: without a description."""
        letters, self.letters = self.letters, []
        latest, self._latest = self._latest, {}
        self._bytes = 0
        wrong = {module for module, keys in latest.items() if not _repeats(*keys)}
        for letter in letters:
            if id(letter.args[0]) in wrong:
                letter.calls.kernels.clear()
        return letters

    def _without_copies(self, calls: Calls, args: tuple[Any, ...]) -> None:
        """Keys and values that were repeated for every head are let go; the latest are compared."""
        describe, names, given, options, (output, *rest) = calls.kernels[0]
        key, inside = args[2], given[1]
        if inside.size(1) > key.size(1) and inside.size(2) == key.size(2):
            self._latest[id(args[0])] = (inside, key)
            given = (given[0], key, args[3], *given[3:])
        # Models may write to outputs at once.
        calls.kernels[0] = Kernel(describe, names, given, options, (output.clone(), *rest))


def _repeats(inside: Tensor, key: Tensor) -> bool:
    """True if a kernel got the caller's keys, each for as many heads as share it."""
    group = inside.shape[1] // key.shape[1]
    return torch.equal(inside[:, ::group], key.to(inside.dtype))


def _versions(result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[int, ...]:
    mask, weights = _mask_of(args, kwargs), result[1]
    return (
        args[1]._version,
        args[2]._version,
        args[3]._version,
        0 if mask is None else mask._version,
        0 if weights is None else weights._version,
    )
