"""Units of work: each is taken once, own range first; waiting ends with the last unit."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from clearhead.engine.engine import Engine, engine_runs_here
from tests.shared.engine_steps import call

pytestmark = pytest.mark.skipif(not engine_runs_here(), reason="no OpenMP or half precision here")

WORDS = 8  # 64-bit numbers in a cache line


def test_the_own_range_first_then_the_others() -> None:
    counters = np.zeros(2 * 6 * WORDS, np.int64)
    taken = [call("next_unit", counters.ctypes.data, 1, 7, 1, 3) for _ in range(8)]
    assert taken == [2, 3, 4, 5, 6, 0, 1, -1]  # ranges 0-1, 2-3, 4-6
    assert not counters[: 6 * WORDS].any()  # phase 0 is untouched
    assert call("next_unit", counters.ctypes.data, 0, 7, 0, 3) == 0


def test_fewer_units_than_threads() -> None:
    counters = np.zeros(10 * WORDS, np.int64)
    assert [call("next_unit", counters.ctypes.data, 0, 1, 2, 5) for _ in range(2)] == [0, -1]


def test_threads_take_every_unit_once() -> None:
    Engine.prepare()
    counters, units, threads = np.zeros(6 * WORDS, np.int64), 997, 3
    taken: list[list[int]] = [[] for _ in range(threads)]

    def work(thread: int) -> None:
        while (unit := call("next_unit", counters.ctypes.data, 0, units, thread, threads)) >= 0:
            taken[thread].append(unit)

    started = [threading.Thread(target=work, args=(thread,)) for thread in range(threads)]
    for one in started:
        one.start()
    for one in started:
        one.join()
    assert sorted(unit for units_of_one in taken for unit in units_of_one) == list(range(units))


def test_waiting_for_the_last_unit() -> None:
    Engine.prepare()
    counters, threads = np.zeros(3 * 4 * WORDS, np.int64), 2
    finished = (2 * 2 * threads + threads) * WORDS
    counters[finished], counters[finished + WORDS] = 1, 3  # by either thread
    returned: list[int] = []
    waiting = threading.Thread(
        target=lambda: returned.append(call("wait", counters.ctypes.data, 2, 5, threads))
    )
    waiting.start()
    waiting.join(0.02)
    assert not returned
    counters[finished] = 2
    waiting.join(300)
    assert returned == [3]
