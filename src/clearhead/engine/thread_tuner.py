"""All threads or one: measures which is faster at the moment.

Two threads are slower than one while another process uses the second core: the first waits for the
second at the end of every step, for as long as the scheduler likes (4 ms at a time). So each
option is tried again from time to time, and the faster one is used otherwise. The bits are the
same either way.

Long steps take all threads without a trial: such a wait is then a small part of the step, while 64
tokens of a prompt on one thread would be as long as two steps. A model of 1.1 billion parameters
once lost a fifth of a prompt's speed to trials.

An option is judged by the median of its last steps. With a mean, one slow step, which every machine
has, would move all following steps to one thread: on an idle machine with a short cache, a third of
the steps then ran on one thread, and a token took 3.5 ms instead of 3.0 (no difference with a long
cache).
"""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Callable

HISTORY = 5  # steps of each option
RETRY_ALL, RETRY_ONE = 0.1, 2.0  # seconds after which an unused option is tried again
LONG = 0.020  # seconds of a step that takes all threads


class ThreadTuner:
    """The times of the last steps of one kind, on all threads and on one."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._seconds: dict[int, deque[float]] = {}  # for each token
        self._last_tried: dict[int, float] = {}

    def choose(self, maximum: int, tokens: int = 1) -> int:
        """Return the number of threads for the next step, of so many tokens: ``maximum`` or 1."""
        if maximum in self._seconds and tokens * self._median(maximum) > LONG:
            return maximum
        for count, retry in ((maximum, RETRY_ALL), (1, RETRY_ONE)):
            if count not in self._last_tried or self._clock() - self._last_tried[count] > retry:
                return count
        return min((maximum, 1), key=self._median)

    def record(self, count: int, seconds: float, tokens: int = 1) -> None:
        """Record the time of a step of so many tokens on ``count`` threads."""
        self._seconds.setdefault(count, deque(maxlen=HISTORY)).append(seconds / tokens)
        self._last_tried[count] = self._clock()

    def _median(self, count: int) -> float:
        return statistics.median(self._seconds[count])
