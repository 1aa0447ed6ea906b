"""All threads or one: whichever is quicker just now.

Two threads are slower than one while another process has the second core: the first waits for the
second at the end of every step, for as long as the scheduler likes (4 ms at a time). So each way is
tried again now and then, and the quicker one taken in between. The bits are the same either way.

A way is judged by the median of its last steps. A mean would let one slow step, which every machine
has, send all that follow to one thread: with the machine to itself and a short cache a third of the
steps then ran on one thread, and a token took 3.5 ms instead of 3.0 (no difference with long ones).
"""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Callable

REMEMBERED = 5  # steps of each way
AGAIN_ALL, AGAIN_ONE = 0.1, 0.5  # seconds after which a way that is not taken gets another chance


class Pace:
    """What steps of one kind took lately, on all threads and on one."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._took: dict[int, deque[float]] = {}
        self._tried: dict[int, float] = {}

    def threads(self, most: int) -> int:
        """On how many threads the next step should run: ``most`` or 1."""
        for count, again in ((most, AGAIN_ALL), (1, AGAIN_ONE)):
            if count not in self._tried or self._clock() - self._tried[count] > again:
                return count
        return min((most, 1), key=lambda count: statistics.median(self._took[count]))

    def learn(self, count: int, took: float) -> None:
        """A step took so many seconds on so many threads."""
        self._took.setdefault(count, deque(maxlen=REMEMBERED)).append(took)
        self._tried[count] = self._clock()
