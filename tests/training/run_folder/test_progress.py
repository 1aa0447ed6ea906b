"""Progress: steps, validations and milestones are counted, and impossible ones are refused."""

from __future__ import annotations

from typing import Any

import pytest

from clearhead.training.run_folder.progress import MOST_LOSSES, LogPosition, Progress
from clearhead.training.schedule import Pace


def test_steps_and_losses_are_counted() -> None:
    progress = Progress(pace=Pace(50))
    for step in range(1, 31):
        progress.stepped(float(step))
    assert (progress.step, progress.total, Progress().total) == (30, 50, None)
    assert progress.first == 1.0
    assert progress.recent == tuple(map(float, range(31 - MOST_LOSSES, 31)))


def test_the_best_validation_is_kept() -> None:
    progress = Progress(step=5)
    assert progress.validated(2.0) and progress.best == (2.0, 5)
    progress.step = 7
    assert not progress.validated(3.0)
    assert (progress.best, progress.stale, progress.loss) == ((2.0, 5), 1, 3.0)
    progress.step = 11
    assert progress.validated(1.0) and progress.stale == 0


def test_the_last_milestones_are_kept() -> None:
    progress = Progress()
    for step in (3, 5, 7):
        progress.step = step
        assert not progress.at_milestone
        progress.reached(2)
        assert progress.at_milestone
    assert progress.milestones == (5, 7)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"step": -1}, "counts from 0"),
        ({"seconds": -1.0}, "counts from 0"),
        ({"step": 7, "milestones": (5, 3)}, "in order"),
        ({"step": 7, "milestones": (11,)}, "remembers later ones"),
        ({"step": 7, "best": (1.0, 11)}, "remembers later ones"),
        ({"recent": (1.0,) * 21}, "at most 20 losses"),
    ],
)
def test_what_cannot_be(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Progress(**fields)


def test_a_log_has_a_length() -> None:
    with pytest.raises(ValueError, match="cannot have -3 bytes"):
        LogPosition(-3, "")
