"""All threads or one: what is quicker just now, with a fresh look now and then."""

from __future__ import annotations

from clearhead.generation.engine_pace import AGAIN_ALL, AGAIN_ONE, REMEMBERED, Pace


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def learned(clock: Clock, **took: list[float]) -> Pace:
    pace = Pace(clock)
    for seconds in took["four"]:
        pace.learn(4, seconds)
    for seconds in took["one"]:
        pace.learn(1, seconds)
    return pace


def test_each_way_is_tried_first() -> None:
    pace = Pace(Clock())
    assert pace.threads(4) == 4
    pace.learn(4, 0.010)
    assert pace.threads(4) == 1
    pace.learn(1, 0.006)
    assert pace.threads(4) == 1  # another process has the other cores


def test_one_slow_step_changes_nothing_and_several_do() -> None:
    pace = learned(Clock(), four=[0.003] * REMEMBERED, one=[0.004])
    pace.learn(4, 0.050)
    pace.learn(4, 0.050)
    assert pace.threads(4) == 4
    pace.learn(4, 0.050)
    assert pace.threads(4) == 1


def test_a_way_that_is_not_taken_gets_another_chance() -> None:
    clock = Clock()
    pace = learned(clock, four=[0.050] * REMEMBERED, one=[0.004])
    assert pace.threads(4) == 1
    for _ in range(3):  # the other process has ended: three good steps are enough
        clock.now += AGAIN_ALL * 1.1
        assert pace.threads(4) == 4
        pace.learn(4, 0.003)
    assert pace.threads(4) == 4
    clock.now += AGAIN_ONE * 1.1
    pace.learn(4, 0.003)
    assert pace.threads(4) == 1


def test_one_thread_is_one_thread() -> None:
    pace = Pace()
    assert pace.threads(1) == 1
    pace.learn(1, 0.01)
    assert pace.threads(1) == 1
