"""Who is told of every attention call in this thread: nobody, unless somebody watches."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeAlias

from torch import Tensor

from clearhead.attention.call import Call

# Told after a call: what was computed, its output (batch, head, query, value_dim), and the
# log-sum-exp (batch, head, query) over the keys, without sinks, where the kernel gave it.
Observer: TypeAlias = Callable[[Call, Tensor, Tensor | None], None]


class Observers(threading.local):
    """The observers of one thread."""

    watching: tuple[Observer, ...] = ()

    def tell(self, call: Call, output: Tensor, logsum: Tensor | None) -> None:
        """Tell all of them of one call."""
        for observer in self.watching:
            observer(call, output, logsum)


OBSERVERS = Observers()
