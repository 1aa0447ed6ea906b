"""Observers of the attention calls of this thread: none, unless somebody watches."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeAlias

from torch import Tensor

from clearhead.attention.call import Call

# Called after a call, with what was computed, its output (batch, head, query, value_dim), and the
# log-sum-exp (batch, head, query) over the keys, without sinks, where the kernel gave it.
Observer: TypeAlias = Callable[[Call, Tensor, Tensor | None], None]


class Observers(threading.local):
    """The observers of one thread."""

    watching: tuple[Observer, ...] = ()

    def notify(self, call: Call, output: Tensor, logsum: Tensor | None) -> None:
        """Call all of them with one attention call."""
        for observer in self.watching:
            observer(call, output, logsum)


OBSERVERS = Observers()
