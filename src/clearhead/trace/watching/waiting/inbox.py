"""Calls that are put down as they came, and read later.

In a generation every layer runs once for each token, and what ``watch`` does between two layers
costs more than the same work at a quieter moment: the processor has to fetch code and data for it
again and again. So once a step of a layer was understood (``step_buffer``), the next ones are put
into an inbox, with the version counters of their tensors, and read many at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from clearhead.trace.watching.doors.passing_by import may_pass
from clearhead.trace.watching.module_stack import Frame, running_frames
from clearhead.trace.watching.waiting.bare_step import (
    MORE,
    BareStep,
    Known,
    alone_step,
    bare_step,
    own_function,
)
from clearhead.trace.watching.watchers import ALONE, COLLECTED, Calls, Kernel

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


class Inbox:
    """The unread calls of one watch, in the order in which they ran."""

    def __init__(
        self,
        read: Callable[[], None] = lambda: None,
        fail: Callable[[Exception], None] = lambda _: None,
    ) -> None:
        self._read, self._fail = read, fail  # when it is full; when a call could not be put down
        self.known: dict[int, Known] = {}  # by module: layers whose steps were understood before
        self.letters: list[BareStep | Letter] = []
        self._bytes = 0
        self._latest: dict[int, tuple[Tensor, Tensor]] = {}  # keys of a kernel, and of the caller

    def takes(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        """Whether a call may wait, as a step of a layer that is known, run as it was before: with
        what runs inside of it, or ALONE."""
        known = self.known.get(id(args[0])) if len(args) > 3 else None
        if known is None:
            return 0
        module, query, key, value, *more = args
        running = running_frames()
        here = running and running[-1] is known.place.at
        if not here or module.training or query.size(2) != 1 or _transform() is not None:
            return 0
        if _backward() != -1 or query.is_inference():
            return 0
        if function is not known.function or key._version or value._version or len(more) > 1:
            return COLLECTED
        for name in MORE:
            if kwargs.get(name) is not None:
                return COLLECTED
        mask = more[0] if more else kwargs.get("attention_mask")
        if mask is not None and (known.fused or mask.size(-1) != key.size(2)):
            return COLLECTED
        scale, kind = kwargs.get("scaling"), known.dtype
        if known.scale != (query.size(-1) ** -0.5 if scale is None else scale):
            return COLLECTED
        if query.dtype != kind or key.dtype != kind or value.dtype != kind:
            return COLLECTED
        if not (query.is_cpu and key.is_cpu and value.is_cpu and may_pass()):
            return COLLECTED
        plain = type(query) is Tensor and type(key) is Tensor and type(value) is Tensor
        return COLLECTED if not plain or (known.fused and kwargs.get("dropout")) else ALONE

    def put_alone(self, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Put down a call of which nobody saw what ran inside."""
        try:
            step = alone_step(self.known[id(args[0])], result, args, kwargs)
            self.letters.append(step)
            self._bytes += 2 * step.key.nbytes
        except Exception as error:  # the model goes on
            self._fail(error)
        if self._bytes >= MOST_BYTES or len(self.letters) >= MOST_LETTERS * len(self.known):
            self._read()

    def put(
        self,
        calls: Calls,
        result: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        function: Any,
    ) -> None:
        """Put down a call, with what ran inside of it."""
        known, key = self.known[id(args[0])], args[2]
        self._bytes += 2 * key.nbytes
        if len(calls.kernels) == 1 and calls.kernels[0].args[1] is not key:
            self._without_copies(calls, args)
        step = bare_step(known, calls, result, args, kwargs)
        if step is not None and (step.softmaxes == 1 or function is own_function()):
            known.function = function  # nobody need look into it again
        self.letters.append(_letter(known, calls, result, args, kwargs) if step is None else step)

    @property
    def full(self) -> bool:
        """True if it should be read."""
        return self._bytes >= MOST_BYTES or len(self.letters) >= MOST_LETTERS * len(self.known)

    def empty(self) -> tuple[list[BareStep | Letter], set[int]]:
        """All letters, and the modules whose kernels got other keys than their callers had: what
        their letters say is not so."""
        letters, self.letters = self.letters, []
        latest, self._latest = self._latest, {}
        self._bytes = 0
        return letters, {module for module, keys in latest.items() if not _repeats(*keys)}

    def _without_copies(self, calls: Calls, args: tuple[Any, ...]) -> None:
        """Keys and values that were repeated for every head are let go; the latest are compared."""
        describe, names, given, options, result = calls.kernels[0]
        key, inside = args[2], given[1]
        if inside.size(1) > key.size(1) and inside.size(2) == key.size(2):
            self._latest[id(args[0])] = (inside, key)
            given = (given[0], key, args[3], *given[3:])
            calls.kernels[0] = Kernel(describe, names, given, options, result)


def _letter(
    known: Known, calls: Calls, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Letter:
    """A call as it came, but for its output: models may write to that at once."""
    if len(calls.kernels) == 1:
        describe, names, given, options, (output, *rest) = calls.kernels[0]
        calls.kernels[0] = Kernel(describe, names, given, options, (output.clone(), *rest))
    else:
        result = (result[0].clone(), *result[1:])
    forward: int = known.place.owner.forward  # type: ignore[attr-defined]
    versions = _versions(result, args, kwargs)
    return Letter(known.place, forward, calls, result, args, kwargs, versions)


def _repeats(inside: Tensor, key: Tensor) -> bool:
    """True if a kernel got the caller's keys, each for as many heads as share it."""
    group = inside.shape[1] // key.shape[1]
    return torch.equal(inside[:, ::group], key.to(inside.dtype))


def _versions(result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[int, ...]:
    mask, weights = args[4] if len(args) > 4 else kwargs.get("attention_mask"), result[1]
    return (
        args[1]._version,
        args[2]._version,
        args[3]._version,
        0 if mask is None else mask._version,
        0 if weights is None else weights._version,
    )
