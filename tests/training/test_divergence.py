"""Divergence: a loss that is not finite, or that rises, is told; noise is not."""

from __future__ import annotations

import math
import random

import pytest

from clearhead.training.divergence import DivergedError, check_finite, risen
from clearhead.training.run_folder.progress import Progress


def run_of(losses: list[float]) -> Progress:
    progress = Progress()
    for loss in losses:
        progress.stepped(loss)
    return progress


def test_what_is_not_finite() -> None:
    check_finite(3, loss=2.0, norm_of_the_gradient=1.0)
    for bad in (math.nan, math.inf, -math.inf):
        with pytest.raises(DivergedError, match=f"at step 3 the loss is {bad}: the run has div"):
            check_finite(3, loss=bad)
    with pytest.raises(DivergedError, match=r"the loss is 2.0 and the norm of the gradient is nan"):
        check_finite(3, loss=2.0, norm_of_the_gradient=math.nan)


def test_a_loss_that_rises_is_told() -> None:
    assert risen(run_of([2.0, 2.1] * 10 + [5.0, 5.1] * 10)) == pytest.approx((2.0, 5.05))
    assert risen(run_of([2.0, 900.0, 700.0, 500.0] + [9.0, 40.0, 20.0, 1.0] * 5)) is not None
    assert risen(run_of([2.0, 9.0])) == (2.0, 9.0)
    assert risen(run_of([2.0, 2.1, 1.9, 2.0, 30.0])) == (2.0, 30.0)


def test_a_loss_that_falls_or_only_wavers_is_not() -> None:
    assert risen(run_of([])) is None
    assert risen(run_of([2.0])) is None
    assert risen(run_of([2.0, 2.1])) is None
    assert risen(run_of([5.0 - 0.1 * n for n in range(40)])) is None
    generator = random.Random(3)
    told = sum(risen(run_of([generator.gauss(3, 0.2) for _ in range(60)])) is not None
               for _ in range(200))  # fmt: skip
    assert told < 20  # of runs that neither rise nor fall, a few per cent
