"""Learning rates over time, against numbers computed by hand."""

from __future__ import annotations

import math

import pytest

from clearhead.training.schedule import rate_factor
from clearhead.training.settings import ScheduleName, TrainingSettings


def factors(schedule: ScheduleName, total: int | None, steps: list[int]) -> list[float]:
    settings = TrainingSettings(
        steps=100, schedule=schedule, warmup=4, cooldown=0.5, floor=0.1, minutes=None
    )
    return [rate_factor(settings, step, total) for step in steps]


def test_warm_up_is_a_straight_line() -> None:
    for schedule in ("cosine", "inverse-square-root", "linear"):
        assert factors(schedule, 100, [0, 1, 2, 3]) == [0.25, 0.5, 0.75, 1.0]
        assert factors(schedule, None, [0, 3]) == [0.25, 1.0]


def test_the_ways_down() -> None:
    assert factors("linear", 100, [4, 50, 75]) == [1.0, 1.0, pytest.approx(0.1 + 0.9 * 0.5)]
    assert factors("linear", 100, [99]) == [pytest.approx(0.1 + 0.9 / 50)]
    halfway = 4 + (100 - 4) // 2
    assert factors("cosine", 100, [halfway]) == [pytest.approx(0.1 + 0.9 * 0.5)]
    assert factors("inverse-square-root", 100, [15]) == [math.sqrt(4 / 16)]


def test_without_a_known_end_nothing_falls() -> None:
    assert factors("linear", None, [90]) == factors("cosine", None, [90]) == [1.0]


def test_a_run_shorter_than_its_warm_up() -> None:
    assert factors("linear", 2, [0, 1]) == [0.5, 1.0]
