"""Observers of the attention calls of this context: none, unless somebody watches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

from torch import Tensor

from clearhead.attention.call import Call

# Called after a call, with what was computed, its output (batch, head, query, value_dim), and the
# log-sum-exp (batch, head, query) over the keys, without sinks, where the kernel gave it.
Observer: TypeAlias = Callable[[Call, Tensor, Tensor | None], None]

COMPUTING: ContextVar[bool] = ContextVar("computing", default=False)
_WATCHING: ContextVar[tuple[Observer, ...]] = ContextVar("observers", default=())


class Observers:
    """The observers of the running context: of this task, or of this thread."""

    @property
    def watching(self) -> tuple[Observer, ...]:
        """Who is notified."""
        return _WATCHING.get()

    @watching.setter
    def watching(self, observers: tuple[Observer, ...]) -> None:
        _WATCHING.set(observers)

    @property
    def computing(self) -> bool:
        """True while our own attention computes a call that it will report itself."""
        return COMPUTING.get()

    @contextmanager
    def reported(self) -> Iterator[None]:
        """The kernels that run in the block belong to a call that is reported afterwards."""
        token = COMPUTING.set(True)
        try:
            yield
        finally:
            COMPUTING.reset(token)

    @contextmanager
    def observed_by(self, observer: Observer) -> Iterator[None]:
        """Notify one more observer while the block runs, in whatever order blocks end."""
        self.watching = (*self.watching, observer)
        try:
            yield
        finally:
            self.watching = tuple(known for known in self.watching if known != observer)

    def notify(self, call: Call, output: Tensor, logsum: Tensor | None) -> None:
        """Call all of them with one attention call."""
        for observer in self.watching:
            observer(call, output, logsum)


OBSERVERS = Observers()
