"""All threads or one: what is quicker just now, with a fresh look now and then."""

from __future__ import annotations

from clearhead.generation.engine_pace import AGAIN, Pace


def test_each_way_is_tried_then_the_quicker_one_taken_until_it_is_time_to_look_again() -> None:
    now = 100.0
    pace = Pace(lambda: now)
    assert pace.threads(4) == 4
    pace.learn(4, 0.010)
    assert pace.threads(4) == 1
    pace.learn(1, 0.006)
    assert pace.threads(4) == 1  # another process has the other cores
    now += AGAIN / 2
    pace.learn(1, 0.006)
    now += AGAIN * 0.7
    assert pace.threads(4) == 4  # not tried for a while
    pace.learn(4, 0.003)  # what it took before is forgotten
    assert pace.threads(4) == 4
    pace.learn(4, 0.010)
    assert pace.threads(4) == 1  # (0.003 + 0.010) / 2 is more than 0.006


def test_one_thread_is_one_thread() -> None:
    pace = Pace()
    assert pace.threads(1) == 1
    pace.learn(1, 0.01)
    assert pace.threads(1) == 1
