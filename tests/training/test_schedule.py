"""Learning rates over time, against numbers computed by hand; runs that take their minutes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import pytest

from clearhead.training.schedule import Pace, Stopwatch, rate_factor
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


# the minutes of a run

MINUTES, VALIDATE_EVERY = 10.0, 100


def minutes_of(step_seconds: Callable[[float], float], validation: float = 0.0) -> float:
    """The minutes of a simulated run; ``step_seconds`` says what a step takes at a time."""
    watch, pace, now, step = Stopwatch(MINUTES), None, 0.0, 0
    while pace is None or step < pace.total:
        seconds = step_seconds(now)
        now, step = now + seconds, step + 1
        due = watch.due(now, running=1)
        watch.stepped(seconds)
        if due:
            pace = watch.estimated(pace, step, now, validate_every=VALIDATE_EVERY, endings=1)
        if step % VALIDATE_EVERY == 0:
            now, watch.validation = now + validation, validation
    return (now + validation) / 60


@pytest.mark.parametrize("validation", [0.0, 3.0])
@pytest.mark.parametrize(
    "step_seconds",
    [
        lambda now: 0.05,
        lambda now: 2.5,
        lambda now: 13.0 if now < 30 else 0.6,  # others at the beginning
        lambda now: 0.6 if now < 300 else 3.0,  # from the middle on
        lambda now: 3.0 if 200 < now < 400 else 0.1,
        lambda now: 0.1 if now < 560 else 0.4,  # near the end
        lambda now: 0.4 if now < 560 else 0.1,
        lambda now: 0.2 + 0.15 * ((now * 7) % 1),
        lambda now: 29.0,  # 5 % of the time: the last one may be too much
    ],
)
def test_a_run_takes_its_minutes(step_seconds: Callable[[float], float], validation: float) -> None:
    assert minutes_of(step_seconds, validation) == pytest.approx(MINUTES, rel=0.05)


def test_the_time_before_counts() -> None:
    watch = Stopwatch(1.0, before=48.0)
    for _ in range(20):
        watch.stepped(0.25)
    assert watch.due(5.0)
    pace = watch.estimated(None, 20, 5.0, validate_every=100, endings=2)
    assert pace == Pace(48, 20, 20 / 48)  # 28 steps in the 7 seconds that are left
    assert not watch.due(5.1)


def test_places_go_on() -> None:
    pace = Pace(100)
    again = Pace.estimated(pace, 40, seconds_per_step=1.0, left=20.0)
    assert (again.total, again.step, again.done) == (60, 40, 0.4)
    assert again.place(40) == pytest.approx(24) and again.place(60) == 60
    assert [pace.place(step) for step in (0, 37, 100)] == [0, 37, 100]


def test_where_the_time_is_over_no_step_follows() -> None:
    assert Pace.estimated(Pace(9), 7, seconds_per_step=3.0, left=-5.0).total == 7
    assert Pace.estimated(None, 2, seconds_per_step=0.0, left=1.0).total > 1_000_000


@pytest.mark.parametrize(("seconds", "steps"), [(50.0, 1), (29.0, 2), (20.0, 3), (500.0, 1)])
def test_steps_that_take_most_of_the_time(seconds: float, steps: int) -> None:
    watch, pace, step = Stopwatch(1.0), None, 0
    while pace is None or step < pace.total:
        step += 1
        due = watch.due(step * seconds, running=1)
        watch.stepped(seconds)
        if due:
            pace = watch.estimated(pace, step, step * seconds, validate_every=9, endings=1)
    assert step == steps


@pytest.mark.parametrize("fields", [(-1, 0, 0.0), (5, 7, 0.5), (5, -1, 0.5), (5, 3, 1.5)])
def test_what_cannot_be(fields: tuple[int, int, float]) -> None:
    with pytest.raises(ValueError, match="goes backwards"):
        Pace(*fields)
