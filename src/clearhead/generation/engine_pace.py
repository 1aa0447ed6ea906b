"""All threads or one: whichever is quicker just now.

Two threads are slower than one while another process has the second core: the first waits for the
second at the end of every step, for as long as the scheduler likes (4 ms at a time). So each way is
tried again now and then, and the quicker one taken in between. The bits are the same either way.
"""

from __future__ import annotations

import time
from collections.abc import Callable

AGAIN = 0.5  # seconds after which a way that is not taken gets another chance


class Pace:
    """What steps of one kind took lately, on all threads and on one."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._took: dict[int, float] = {}
        self._tried: dict[int, float] = {}

    def threads(self, most: int) -> int:
        """On how many threads the next step should run: ``most`` or 1."""
        for count in (most, 1):
            if self._stale(count):
                return count
        return min((most, 1), key=lambda count: self._took[count])

    def learn(self, count: int, took: float) -> None:
        """A step took so many seconds on so many threads."""
        before = took if self._stale(count) else self._took[count]
        self._took[count] = (before + took) / 2
        self._tried[count] = self._clock()

    def _stale(self, count: int) -> bool:
        return count not in self._tried or self._clock() - self._tried[count] > AGAIN
