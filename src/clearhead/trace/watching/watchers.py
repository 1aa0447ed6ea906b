"""Who watches in this context, and how a door notifies them without ever disturbing the model.

A context is what ``contextvars`` means by it: an asyncio task has its own, a thread starts with an
empty one unless it is given a copy. Watches that overlap without being nested, or that end in
another order than they began in, do not know of each other.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import nn
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack

from clearhead.attention.observers import COMPUTING
from clearhead.trace.watching.module_stack import Frame
from clearhead.trace.watching.observed_call import ObservedCall


class Kernel(NamedTuple):
    """A call of a fused kernel, not described yet."""

    describe: Callable[[dict[str, Any], Any], ObservedCall]
    names: list[str]  # of its arguments
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any

    def observed(self) -> ObservedCall:
        """The call in our form."""
        given = {**dict(zip(self.names, self.args, strict=False)), **self.kwargs}
        return self.describe(given, self.result)


class Calls:
    """What ran inside of a door that describes it better."""

    __slots__ = ("kernels", "others", "softmaxes")

    def __init__(self) -> None:
        self.kernels: list[Kernel] = []
        self.others: list[ObservedCall] = []
        self.softmaxes = 0  # that kernels computed

    def observed(self) -> list[ObservedCall]:
        """All calls of attention."""
        return [*self.others, *(kernel.observed() for kernel in self.kernels)]


COLLECTED, ALONE = 1, 2


@runtime_checkable
class Watcher(Protocol):
    """Receives the attention calls that the doors observe."""

    @property
    def open(self) -> bool:
        """False once its block has ended, in whatever context that was."""

    def keep(self, observed: ObservedCall) -> None:
        """Record one call."""

    def refuse(self, reason: str, place: Frame | None = None) -> None:
        """Note that a call ran which cannot be reproduced, and why."""

    def explain(self, reason: str) -> None:
        """Note why attention that runs now may not be seen."""

    def happened(self) -> None:
        """Note that attention ran, whoever observed it."""

    def place(self) -> Frame | None:
        """Where in the model a call comes from that runs now; None: from elsewhere."""

    def module(self) -> nn.Module | None:
        """The module that is running, if it belongs to the watched model."""

    def takes(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        """Whether a call with these arguments may be put down, to be described later: not (0);
        with what runs inside of it (COLLECTED); or its function, arguments and result will say all
        of it (ALONE)."""

    def put(
        self,
        calls: Calls,
        result: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        function: Any,
    ) -> None:
        """Put down a call, with what ran inside of it."""

    def put_alone(self, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Put down a call of which nobody saw what ran inside."""


TRANSFORMED = "it ran within torch.func, whose tensors cannot be kept"
_VIEWS = torch._C.DispatchKey.ADInplaceOrView
_WATCHERS: ContextVar[tuple[Watcher, ...]] = ContextVar("watchers", default=())
_COLLECTED: ContextVar[Calls | None] = ContextVar("collected", default=None)
BUSY: ContextVar[bool] = ContextVar("busy", default=False)  # what an observer computes itself


def add_watcher(watcher: Watcher) -> None:
    """Notify one more."""
    _WATCHERS.set((*watchers(), watcher))


def remove_watcher(watcher: Watcher) -> None:
    """Notify all but this one from now on."""
    _WATCHERS.set(tuple(other for other in watchers() if other is not watcher))


def watchers() -> tuple[Watcher, ...]:
    """The open watchers of this context."""
    found = _WATCHERS.get()
    for watcher in found:
        if not watcher.open:
            return tuple(other for other in found if other.open)
    return found


def is_watching() -> bool:
    """True if a call that runs now is to be observed."""
    return bool(_WATCHERS.get()) and not BUSY.get() and not COMPUTING.get()


def is_observing() -> bool:
    """True while an observer computes something of its own."""
    return BUSY.get()


def notify(observed: ObservedCall) -> None:
    """Pass a call to every watcher, or to the outer door that collects calls."""
    if not _plain(observed):
        refuse(TRANSFORMED)
        return
    if not collect(observed):
        for watcher in watchers():
            watcher.keep(observed)


def collect(observed: ObservedCall) -> bool:
    """Pass a call to the outer door that collects calls; False if there is none."""
    collected = _COLLECTED.get()
    if collected is None:
        return False
    collected.others.append(observed)
    return True


def collected() -> Calls | None:
    """What ran so far inside of the door that will describe it; None outside of such doors."""
    return _COLLECTED.get()


def _plain(observed: ObservedCall) -> bool:
    """True if nothing is a tensor of torch.func: those end with their transform. The output of a
    call is one if anything that went into it is."""
    if observed.output is not None:
        return not torch._C._functorch.is_functorch_wrapped_tensor(observed.output)
    parts = (observed.query, observed.key, observed.value, observed.weights)
    return not any(
        part is not None and torch._C._functorch.is_functorch_wrapped_tensor(part)
        for part in (*parts, observed.mask, observed.bias)
    )


def unread_by(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Watcher | None, int]:
    """The watcher of this context, if it is the only one and takes such a call unread, and how."""
    found = _WATCHERS.get()
    if len(found) != 1 or _COLLECTED.get() is not None or BUSY.get() or COMPUTING.get():
        return None, 0
    watcher = found[0]
    try:
        way = watcher.takes(function, args, kwargs) if watcher.open else 0
    except Exception:  # arguments that nobody thought of: the call is described as any other
        way = 0
    return (watcher, way) if way else (None, 0)


def refuse(reason: str) -> None:
    """Report to every watcher that a call cannot be reproduced; an outer door may know better."""
    if _COLLECTED.get() is None:
        for watcher in watchers():
            watcher.refuse(reason)


def happened() -> None:
    """Tell every watcher that attention ran, whoever observes it."""
    for watcher in watchers():
        watcher.happened()


def mark_place() -> dict[int, Frame]:
    """Where a call comes from that will be reported later, for each watcher."""
    places = ((watcher, watcher.place()) for watcher in watchers())
    return {id(watcher): place for watcher, place in places if place is not None}


def refuse_at(places: dict[int, Frame], reason: str) -> None:
    """Like :func:`refuse`, for a call that ran earlier."""
    if _COLLECTED.get() is None:
        for watcher in watchers():
            if id(watcher) in places:
                watcher.refuse(reason, places[id(watcher)])


class collecting:  # noqa: N801 - a context manager; one made of a generator takes twice as long
    """Calls that are observed in the block go into a list only: this door knows more of them."""

    def __enter__(self) -> Calls:
        calls = Calls()
        self._token = _COLLECTED.set(calls)
        return calls

    def __exit__(self, *_: object) -> None:
        _COLLECTED.reset(self._token)


class unobserved:  # noqa: N801 - a context manager, as quick
    """Nothing that runs in the block is observed: it is part of something that is."""

    def __enter__(self) -> None:
        self._token = BUSY.set(True)

    def __exit__(self, *_: object) -> None:
        BUSY.reset(self._token)


def failure(error: Exception) -> str:
    """The reason for a miss if watching itself failed."""
    first = (str(error).splitlines() or [""])[0][:120]
    return f"watching it failed: {type(error).__name__}: {first}"


def explain(reason: str) -> None:
    """Say why attention that runs now may not be seen, should it not be."""
    for watcher in watchers():
        watcher.explain(reason)


def _views_counted() -> Any:
    """Views and detached tensors share the count of writes with the model's own, also below
    autograd, where they would begin at 0."""
    return torch._C._SetExcludeDispatchKeyGuard(_VIEWS, False)


def _untransformed() -> AbstractContextManager[Any]:
    """No torch.func around what an observer computes: its tensors would end with the transform."""
    if torch._C._functorch.peek_interpreter_stack() is None:
        return nullcontext()
    return temporarily_clear_interpreter_stack()


def observe(action: Callable[..., Any], *args: Any) -> Any:
    """Run what an observer does. It is not observed itself, leaves no trace in the model's graph,
    and whatever fails in it becomes a reason for a missed call: the model goes on."""
    if BUSY.get():
        return None
    token = BUSY.set(True)
    try:
        with torch._C.DisableTorchFunction(), _views_counted(), _untransformed():
            if not torch.is_grad_enabled() and not torch.is_autocast_enabled("cpu"):
                return action(*args)
            with torch.no_grad(), torch.autocast("cpu", enabled=False):
                return action(*args)
    except Exception as error:
        refuse(failure(error))
    finally:
        BUSY.reset(token)
    return None
