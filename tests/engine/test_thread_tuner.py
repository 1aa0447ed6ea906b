"""All threads or one: the faster option is used, the other is tried again now and then."""

from __future__ import annotations

from clearhead.engine.thread_tuner import HISTORY, LONG, RETRY_ALL, RETRY_ONE, ThreadTuner


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def learned(clock: Clock, **took: list[float]) -> ThreadTuner:
    tuner = ThreadTuner(clock)
    for seconds in took["four"]:
        tuner.record(4, seconds)
    for seconds in took["one"]:
        tuner.record(1, seconds)
    return tuner


def test_each_way_is_tried_first() -> None:
    tuner = ThreadTuner(Clock())
    assert tuner.choose(4) == 4
    tuner.record(4, 0.010)
    assert tuner.choose(4) == 1
    tuner.record(1, 0.006)
    assert tuner.choose(4) == 1  # another process has the other cores


def test_one_slow_step_changes_nothing_and_several_do() -> None:
    tuner = learned(Clock(), four=[0.003] * HISTORY, one=[0.004])
    tuner.record(4, 0.015)
    tuner.record(4, 0.015)
    assert tuner.choose(4) == 4
    tuner.record(4, 0.015)
    assert tuner.choose(4) == 1


def test_a_way_that_is_not_taken_gets_another_try() -> None:
    clock = Clock()
    tuner = learned(clock, four=[0.015] * HISTORY, one=[0.004])
    assert tuner.choose(4) == 1
    for _ in range(3):  # the other process has ended: three good steps are enough
        clock.now += RETRY_ALL * 1.1
        assert tuner.choose(4) == 4
        tuner.record(4, 0.003)
    assert tuner.choose(4) == 4
    clock.now += RETRY_ONE * 1.1
    tuner.record(4, 0.003)
    assert tuner.choose(4) == 1


def test_one_thread_is_one_thread() -> None:
    tuner = ThreadTuner()
    assert tuner.choose(1) == 1
    tuner.record(1, 0.01)
    assert tuner.choose(1) == 1


def test_long_steps_take_all_threads_without_a_trial() -> None:
    tuner = ThreadTuner(Clock())
    assert tuner.choose(4, 64) == 4
    tuner.record(4, 2 * LONG, 64)
    assert tuner.choose(4, 64) == 4
    assert tuner.choose(4, 16) == 1  # a short one of them is a trial
    tuner.record(1, 0.1 * LONG, 16)
    assert tuner.choose(4, 16) == 1
    assert tuner.choose(4, 64) == 4
