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
the model's own weights are kept as they came.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from clearhead.trace.watching.axis_digits import Label
from clearhead.trace.watching.doors.joined_heads import joined_calls, observed_call
from clearhead.trace.watching.observed_call import ObservedCall
from clearhead.trace.watching.sample_check import matches_model, spelled_out
from clearhead.trace.watching.watchers import (
    is_watching,
    mark_place,
    notify,
    observe,
    refuse,
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
    kind: str = "scores"  # then "exp", "log" or "weights"; "output" after the second product
    dropout: float = 0.0
    version: int | None = None


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


Step: TypeAlias = (
    "Callable[[UnfusedMode, Any, tuple[Any, ...], dict[str, Any]], Trail | Pending | None]"
)


@functools.cache
def _is_composite(func: Any) -> bool:
    """True for an operation that torch makes of others."""
    composite = "CompositeImplicitAutograd"
    return torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), composite)


_COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd
_VIEWS = torch._C.DispatchKey.ADInplaceOrView


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
        self._finished: Any = None  # the weights that were multiplied last
        self.paused = 0  # doors that describe what runs now better
        self.noise: dict[int, float] = {}  # dropout masks: address and share that is kept
        self.sums: dict[int, Any] = {}  # addresses of row sums, and of what was summed

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run every operation as it is; look at the result if it is a known step."""
        kwargs = kwargs or {}
        if not isinstance(func, torch._ops.OpOverload):
            return self._higher_order(func, args, kwargs)
        if torch.is_inference_mode_enabled() and _is_composite(func):
            # Elsewhere torch itself takes these apart before they come here. Views of parameters
            # must keep their requires_grad: matmul looks at it and chooses a kernel by it.
            with self, torch._C._SetExcludeDispatchKeyGuard(_VIEWS, False):
                return func._op_dk(_COMPOSITE, *args, **kwargs)
        result = func(*args, **kwargs)
        if not self.paused and is_watching():
            observe(self._note, func, result, args, kwargs)
        return result

    def _higher_order(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Operations that take functions, such as flex_attention, run as they are."""
        result = func(*args, **kwargs)
        if is_watching() and "flex_attention" in str(func):
            observe(refuse, "flex_attention computes its scores with a function of its own")
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
            part in self._pending for part in parts
        ):
            self._pending = [part for part in self._pending if part not in parts]
            self._notify_joined(parts)

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

    def _note(self, func: Any, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        from clearhead.trace.watching.doors.unfused_steps import MOVES, STEPS, opaque

        first = result[0] if isinstance(result, tuple) and result else result
        if not isinstance(first, Tensor) or not args:
            return
        step = STEPS.get(func.overloadpacket, opaque)
        before = self.entry(args[0])
        if isinstance(before, Pending) and step not in MOVES and first.shape == args[0].shape:
            found: Trail | Pending | None = before  # whatever becomes of the output
        else:
            found = step(self, first, args, kwargs)  # type: ignore[no-untyped-call]
        name = _name(first)
        if found is None:
            self._trails.pop(name, None)
            return
        if isinstance(found, Trail):
            written = func._schema.is_mutable and not first.is_inference()  # counted after this
            found = replace(
                found, version=None if version(first) is None else first._version + written
            )
        self._trails[name] = found

    def _notify(self, pending: Pending) -> None:
        observed = self._described(pending)
        if isinstance(observed, str):
            refuse_at(pending.place, observed)
            return
        storage = _storage(pending.weights)
        observed.repeated = self._finished == storage
        self._finished = storage
        notify(observed)

    def _notify_joined(self, parts: list[Pending]) -> None:
        calls = [self._described(part) for part in parts]
        joined = joined_calls(calls, mark_place())
        if isinstance(joined, str):
            refuse_at(parts[0].place, joined)
        else:
            notify(joined)

    def _described(self, pending: Pending) -> ObservedCall | str:
        """The call, with the model's own weights if the formula does not give them."""
        trail = pending.trail
        parts = (trail.query, trail.key, pending.value, pending.output)
        if pending.versions != tuple(version(part) or 0 for part in parts):
            return "its queries, keys, values or output were written over at once"
        observed = observed_call(pending)
        if isinstance(observed, str):
            return observed
        observed.places = pending.place
        if trail.opaque or not matches_model(observed):
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


def _storage(tensor: Tensor) -> Any:
    return tensor.untyped_storage().data_ptr(), tensor.numel()
