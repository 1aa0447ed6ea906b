"""The door at unfused attention: a model computes product, softmax and product by itself.

    scores  = query @ key.transpose(-1, -2)      torch.matmul, bmm, baddbmm, einsum …
    scores  = scores * scale + mask              and ÷, −, masked_fill, where, tanh, view, dropout …
    weights = softmax(scores)
    output  = weights @ value

While a module runs whose code may do that, a dispatch mode hears of every operation that torch
really carries out: below autograd and autocast, whatever name it was called by. Every step on the
way from the first product to the second is followed (``unfused_steps.py``), and so is the output
until its heads are joined, which tells heads from sequences (``joined_heads.py``). Nothing is
computed anew for the model. A step that has no place in the formula makes a trail *opaque*: then
the model's own weights are kept as they came. Weights that the model mixes over heads, subtracts
from one another or changes in another way before the second product are kept as they were before.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from clearhead.trace.watching.axis_digits import Dim, Label, stack_joined
from clearhead.trace.watching.doors.flex import flex_call, is_flex
from clearhead.trace.watching.doors.joined_heads import (
    UNCLEAR,
    joined_calls,
    mixed_calls,
    observed_call,
)
from clearhead.trace.watching.observed_call import ObservedCall
from clearhead.trace.watching.sample_check import matches_model, spelled_out
from clearhead.trace.watching.watchers import (
    explain,
    failure,
    is_watching,
    mark_place,
    notify,
    observe,
    refuse_at,
)


@dataclass(frozen=True)
class Part:
    """A tensor that took part in a step, with the label that the scores had then."""

    tensor: Tensor
    label: Label


@dataclass(frozen=True)
class Trail:
    """How a tensor came from a product of queries and keys."""

    query: Tensor  # (z, n, width)
    key: Tensor  # (z, m, width)
    label: Label  # where the axes z, n, m of the product are now
    scale: float = 1.0
    capped: float | None = None  # the factor after a tanh
    added: tuple[Part, ...] = ()
    factors: tuple[Part, ...] = ()  # numbers for each row that the scores were multiplied with
    hidden: tuple[Part, ...] = ()  # True = may not attend
    fill: float = 0.0  # the number that hidden scores got
    opaque: bool = False  # some step does not fit the formula
    kind: str = "scores"  # then "exp", "log", "weights"; "mixed", if these were changed afterwards
    dropout: float = 0.0
    version: int | None = None
    shifted: bool = False  # a number of its own was taken from each row
    rest: float = 0.0  # what was added to the sum of exponentials
    talking: bool = False  # heads were mixed before the softmax: "g" in the label counts new ones
    before: tuple[Source, ...] = ()  # of mixed weights: what they were made of


@dataclass(frozen=True)
class Source:
    """Weights as a softmax gave them, before they were mixed."""

    trail: Trail
    weights: Tensor
    heads: Dim = ()  # those that were mixed with one another; (): none

    @property
    def whole(self) -> bool:
        """True if nobody has written over them since."""
        return self.trail.version in (None, version(self.weights))


@dataclass(eq=False)
class Pending:
    """A call whose second product was taken, until its heads are joined."""

    trail: Trail
    weights: Tensor
    value: Tensor  # (z, m, value width), z as the weights have it
    output: Tensor
    label: Label  # of the output as it came
    joined: Label | None = None  # of the output with its heads joined to the width
    place: Any = None
    versions: tuple[int, ...] = ()
    parts: tuple[Pending, ...] = ()  # calls whose outputs were stacked: what they are shows later


Step: TypeAlias = (
    "Callable[[UnfusedMode, Any, tuple[Any, ...], dict[str, Any]], Trail | Pending | None]"
)


@functools.cache
def _is_composite(func: Any) -> bool:
    """True for an operation that torch makes of others."""
    composite = "CompositeImplicitAutograd"
    return torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), composite)


_COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd


@functools.cache
def _is_cast(func: Any, device: str) -> bool:
    """True for an operation that autocast handles itself: what it is made of is then left alone."""
    key = f"Autocast{device.upper()}"
    return torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), key)


def _device(args: tuple[Any, ...]) -> str:
    parts = [part for arg in args for part in (arg if isinstance(arg, list | tuple) else [arg])]
    return next((part.device.type for part in parts if isinstance(part, Tensor)), "cpu")


# Tangents of zero have no memory. A mode leaves out the station that knows of them, and a kernel
# that reads one ends the process.
_ZERO_TENSOR = torch._C.DispatchKey.ZeroTensor
_ZEROS = torch.ops.aten._efficientzerotensor.default


class UnfusedMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Follows the tensors of one running module from query · key to weights · value."""

    supports_higher_order_operators = True

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Compiled functions run as compiled, and torch's compiler does not see this mode."""
        return True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._trails: dict[Any, Trail | Pending] = {}
        self._pending: list[Pending] = []
        self._finished: list[StorageWeakRef] = []  # weights that were multiplied and described
        self._refused: list[tuple[Pending, str]] = []
        self.paused = 0  # doors that describe what runs now better
        self.noise: dict[int, float] = {}  # dropout masks: address and share that is kept
        self.sums: dict[int, Any] = {}  # addresses of row sums, and of what was summed
        self.writes = False  # the operation that runs now writes to its first argument
        self._has_zeros = forward_ad._current_level >= 0  # tangents of zero may be there

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run every operation as it is; look at the result if it is a known step."""
        kwargs = kwargs or {}
        if not isinstance(func, torch._ops.OpOverload):
            return self._higher_order(func, args, kwargs)
        if torch.is_inference_mode_enabled() and _is_composite(func):
            # Elsewhere torch itself takes these apart before they come here. That runs in the state
            # of the caller: autocast counts, unless it has cast the operation as a whole, and views
            # of parameters keep their requires_grad.
            cast = torch._C._DisableAutocast() if _is_cast(func, _device(args)) else nullcontext()
            with torch._C._RestorePythonTLSSnapshot(), cast, self:  # type: ignore[attr-defined]
                return func._op_dk(_COMPOSITE, *args, **kwargs)
        self._has_zeros = self._has_zeros or func is _ZEROS
        if self._has_zeros:
            with torch._C._SetExcludeDispatchKeyGuard(_ZERO_TENSOR, False):
                result = func(*args, **kwargs)
        else:
            result = func(*args, **kwargs)
        if not self.paused and is_watching():
            observe(self._note, func, result, args, kwargs)
        return result

    def _higher_order(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Operations that take functions, such as flex_attention, run as they are."""
        result = func(*args, **kwargs)
        if is_watching() and is_flex(func):
            observe(flex_call, args, result)
        return result

    def trail(self, tensor: Any) -> Trail | None:
        """How a tensor came about, if it is on a trail."""
        found = self.entry(tensor)
        return found if isinstance(found, Trail) else None

    def entry(self, tensor: Any) -> Trail | Pending | None:
        """The trail of a tensor, or the call whose output it is."""
        if not isinstance(tensor, Tensor) or not self._trails:
            return None
        found = self._trails.get(_name(tensor))
        if isinstance(found, Trail) and found.version is not None:
            return found if version(tensor) in (None, found.version) else None
        return found

    def finish(self, pending: Pending) -> Pending:
        """Remember the second product until the heads are joined."""
        if pending.output.is_inference():  # nobody counts what is written to these later
            trail = pending.trail
            pending.trail = replace(trail, query=trail.query.clone(), key=trail.key.clone())
            pending.value = pending.value.clone()
        pending.output = pending.output.clone()  # nor to this, by views that torch calls unsafe
        parts = (pending.trail.query, pending.trail.key, pending.value, pending.output)
        pending.versions = tuple(version(part) or 0 for part in parts)
        pending.place = mark_place()
        self._pending.append(pending)
        return pending

    def join(self, parts: list[Pending]) -> None:
        """Notify the watchers of heads that were computed one by one and are joined now."""
        if len({id(part) for part in parts}) == len(parts) and all(
            part in self._pending and not part.parts for part in parts
        ):
            self._pending = [part for part in self._pending if part not in parts]
            self._notify_joined(parts)

    def stack(self, parts: list[Pending], label: Label) -> Pending | None:
        """Outputs on an axis of their own: heads, if the model joins that axis to the width."""
        if not all(part in self._pending and not part.parts for part in parts):
            return None
        self._pending = [part for part in self._pending if part not in parts]
        group = replace(parts[0], label=label, joined=None, parts=tuple(parts))
        self._pending.append(group)
        return group

    def complete(self, pending: Pending) -> None:
        """Notify the watchers of a call."""
        if pending in self._pending:
            self._pending.remove(pending)
            self._notify(pending)

    def flush(self) -> None:
        """Calls whose heads were never joined."""
        waiting, self._pending = self._pending, []
        for pending in waiting:
            self._notify(pending)
        for pending, reason in self._refused:
            if not self._is_known(pending):
                refuse_at(pending.place, reason)
        self._refused.clear()

    def _note(self, func: Any, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        from clearhead.trace.watching.doors.unfused_steps import MOVES, STEPS, opaque

        first = result[0] if isinstance(result, tuple) and result else result
        if not isinstance(first, Tensor) or not args:
            return
        step = STEPS.get(func.overloadpacket, opaque)
        self.writes = func._schema.is_mutable
        self._forget_freed(first, args)
        before = self.entry(args[0])
        if isinstance(before, Pending) and step not in MOVES and first.shape == args[0].shape:
            found: Trail | Pending | None = before  # whatever becomes of the output
        else:
            found = self._taken(step, first, args, kwargs)
        name = _name(first)
        if found is None:
            self._trails.pop(name, None)
            return
        if isinstance(found, Trail):
            written = self.writes and not first.is_inference()  # counted after this
            found = replace(
                found, version=None if version(first) is None else first._version + written
            )
        self._trails[name] = found

    def _taken(
        self, step: Step, result: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Trail | Pending | None:
        """What a step makes of a trail; a step that fails loses it."""
        try:
            return step(self, result, args, kwargs)
        except Exception as error:
            explain(failure(error))
            return None

    def _forget_freed(self, result: Tensor, args: tuple[Any, ...]) -> None:
        """A new tensor at a known address: what stood there is gone."""
        address = result.data_ptr()
        if address in self.noise or address in self.sums:
            given = [part.data_ptr() for part in args if isinstance(part, Tensor)]
            if address not in given:
                self.noise.pop(address, None)
                self.sums.pop(address, None)

    def _notify(self, pending: Pending) -> None:
        try:
            self._describe(pending)
        except Exception as error:
            self._pass_on(pending, failure(error))

    def _describe(self, pending: Pending) -> None:
        if self._is_known(pending):
            return
        if pending.parts:
            if pending.joined is not None and stack_joined(pending.joined):
                self._notify_joined(list(pending.parts))
            else:
                self._pass_on(pending, UNCLEAR)
        elif pending.trail.kind == "mixed":
            calls = [self._checked(call, pending) for call in mixed_calls(pending)]
            for call in calls:
                self._pass_on(pending, call)
            if not any(isinstance(call, str) for call in calls):
                self._finish(*(source.weights for source in pending.trail.before))
        else:
            observed = self._described(pending)
            if isinstance(observed, ObservedCall):
                self._finish(pending.weights)
            self._pass_on(pending, observed)

    def _is_known(self, pending: Pending) -> bool:
        """True if the same weights were multiplied before, or if they are mixed from such that are:
        a derivative does that."""
        if pending.parts:
            return all(self._is_known(part) for part in pending.parts)
        if pending.trail.kind != "mixed":
            return self._is_finished(pending.weights)
        others = (part for part in self._pending if part is not pending)
        waiting = [_weak(part.weights) for part in others if part.trail.kind != "mixed"]
        return all(
            self._is_finished(source.weights) or _weak(source.weights) in waiting
            for source in pending.trail.before
        )

    def _is_finished(self, weights: Tensor) -> bool:
        self._finished = [known for known in self._finished if not known.expired()]  # type: ignore[no-untyped-call]
        return _weak(weights) in self._finished

    def _finish(self, *weights: Tensor) -> None:
        self._finished += [_weak(part) for part in weights]

    def _pass_on(self, pending: Pending, observed: ObservedCall | str) -> None:
        """A call that cannot be described is refused at the end: the same weights may come again,
        as they do in derivatives."""
        if isinstance(observed, str):
            self._refused.append((pending, observed))
        else:
            notify(observed)

    def _notify_joined(self, parts: list[Pending]) -> None:
        if all(self._is_known(part) for part in parts):
            return
        calls = [self._described(part, one_head=True) for part in parts]
        joined = joined_calls(calls, mark_place())
        if isinstance(joined, ObservedCall):
            self._finish(*(part.weights for part in parts))
        self._pass_on(parts[0], joined)

    def _described(self, pending: Pending, *, one_head: bool = False) -> ObservedCall | str:
        """The call, with the model's own weights if the formula does not give them."""
        trail = pending.trail
        parts = (trail.query, trail.key, pending.value, pending.output)
        if pending.versions != tuple(version(part) or 0 for part in parts):
            return "its queries, keys, values or output were written over at once"
        return self._checked(observed_call(pending, one_head=one_head), pending)

    def _checked(self, observed: ObservedCall | str, pending: Pending) -> ObservedCall | str:
        if isinstance(observed, str):
            return observed
        observed.places = pending.place
        if observed.opaque or not matches_model(observed):
            return spelled_out(observed)
        return observed


_MODE: ContextVar[UnfusedMode | None] = ContextVar("unfused", default=None)


class steps_paused:  # noqa: N801 - a context manager
    """Follow nothing in the block: another door describes it. A new mode may be begun in it."""

    def __enter__(self) -> None:
        self._mode = _MODE.get()
        if self._mode is not None:
            self._mode.paused += 1
            self._token = _MODE.set(None)

    def __exit__(self, *_: object) -> None:
        if self._mode is not None:
            self._mode.paused -= 1
            _MODE.reset(self._token)


def follow_steps() -> Callable[[], None]:
    """Follow the operations of a module that begins; returns what to call when it ends."""
    if _MODE.get() is not None:
        return _nothing
    mode = UnfusedMode()
    mode.__enter__()  # type: ignore[no-untyped-call]
    token = _MODE.set(mode)

    def end() -> None:
        mode.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        _MODE.reset(token)
        observe(mode.flush)

    return end


def _nothing() -> None:
    """A module within another one that is followed already."""


def version(tensor: Tensor) -> int | None:
    """How many times a tensor was written to; inference tensors do not count it."""
    return None if tensor.is_inference() else tensor._version


def _name(tensor: Tensor) -> Any:
    """Autograd makes new objects for the same tensor: its place in memory is what stays."""
    return (tensor.data_ptr(), tuple(tensor.shape), tensor.stride())


def _weak(tensor: Tensor) -> StorageWeakRef:
    """The memory of a tensor, without keeping it: an address alone may be given away again."""
    return StorageWeakRef(tensor.untyped_storage())  # type: ignore[no-untyped-call]
