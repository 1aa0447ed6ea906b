"""Learning rates over time, against numbers computed by hand."""

from __future__ import annotations

import itertools
import math

import pytest

from clearhead.training.pace import Pace
from clearhead.training.schedule import rate_factor
from clearhead.training.settings import ScheduleName, TrainingSettings


def factors(schedule: ScheduleName, total: int | None, steps: list[int]) -> list[float]:
    settings = TrainingSettings(
        steps=100, schedule=schedule, warmup=4, cooldown=0.5, floor=0.1, minutes=None
    )
    pace = None if total is None else Pace(total)
    return [rate_factor(settings, step, pace) for step in steps]


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


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
@pytest.mark.parametrize("total", [*range(2, 60), 200])
def test_runs_of_every_length_warm_up_and_cool_down(schedule: ScheduleName, total: int) -> None:
    """The usual settings: 40 steps of warm-up, of which a short run takes a quarter at most."""
    settings = TrainingSettings(steps=total, schedule=schedule)
    rates = [rate_factor(settings, step, Pace(total)) for step in range(total)]
    top = rates.index(max(rates))
    assert rates[: top + 1] == sorted(rates[: top + 1])
    assert rates[top:] == sorted(rates[top:], reverse=True)
    assert max(rates) == 1.0 and top <= total // 4
    assert rates[-1] <= settings.floor + 2.0 / max(1.5, total - top)
    falls = [before - after for before, after in itertools.pairwise(rates[top:])]
    assert max(falls) < 4 / total + 1e-9  # nowhere does it jump


def test_a_new_estimate_does_not_jump() -> None:
    settings = TrainingSettings(minutes=1.0, warmup=4, cooldown=0.5, floor=0.0)
    pace = Pace(100)
    at = rate_factor(settings, 75, pace)
    assert at == 0.5
    for seconds in (0.1, 1.0, 10.0):
        again = Pace.estimated(pace, 75, seconds_per_step=seconds, left=100.0)
        assert rate_factor(settings, 75, again) == pytest.approx(0.5)
        assert rate_factor(settings, again.total - 1, again) < 0.06
