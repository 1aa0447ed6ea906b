"""Divergence: a loss that is no longer finite, or that ends above its beginning."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev

from clearhead.errors import ClearheadError
from clearhead.training.run_folder.progress import Progress

MARGIN = 2.0  # standard deviations by which the end must be above the beginning
MOST = 0.5  # of the first loss: what is above it by so much has risen, however it wavers
FEW, OF_FEW = 8, 0.1  # with fewer steps, the last loss must be above the first by this share


class DivergedError(ClearheadError):
    """The loss is no longer a finite number."""


def check_finite(step: int, **values: float) -> None:
    """Refuse to go on with values that are not finite: the run has diverged."""
    if all(map(math.isfinite, values.values())):
        return
    said = " and ".join(f"the {name.replace('_', ' ')} is {v}" for name, v in values.items())
    raise DivergedError(
        f"at step {step} {said}: the run has diverged.",
        hint="lower learning_rate and matrix_learning_rate, or warm up longer; the last "
        "checkpoint is from before it.",
    )


def risen(progress: Progress) -> tuple[float, float] | None:
    """The loss of the first step and the mean of the last ones, if that is higher than by chance.

    The first step's loss is the model's before it has learned anything. How far single losses
    waver is estimated from the last ones.

    >>> risen(Progress(step=3, first=2.0, recent=(2.0, 2.5, 3.0)))
    (2.0, 3.0)
    """
    if progress.first is None or progress.step < 2:
        return None
    last = progress.recent[-max(1, progress.step // 4) :]
    start, end = progress.first, fmean(last)
    return (start, end) if end > start + _margin(start, last, progress.step) else None


def _margin(start: float, last: Sequence[float], steps: int) -> float:
    if steps < FEW:
        return OF_FEW * abs(start)
    return min(MARGIN * stdev(last) * math.sqrt(1 + 1 / len(last)), MOST * abs(start))
