"""Divergence: a loss that is no longer finite, or that ends above its beginning."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, variance

from clearhead.errors import ClearheadError
from clearhead.training.run_folder.progress import Progress

MARGIN = 2.0  # standard errors by which the end must be above the beginning
FEW = 8  # steps; with fewer, the losses of single steps are compared
MARGIN_OF_FEW = 0.1  # of the first loss


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
    """The mean losses of the first and of the last steps, if the last are higher than chance.

    >>> risen(Progress(step=3, first=(2.0, 2.5, 3.0), recent=(2.0, 2.5, 3.0)))
    (2.0, 3.0)
    """
    if progress.step < 2:
        return None
    size = max(1, min(progress.step // 4, len(progress.first)))
    start, end = progress.first[:size], progress.recent[-size:]
    below, above = fmean(start), fmean(end)
    return (below, above) if above > below + _noise(start, end, progress.step) else None


def _noise(start: Sequence[float], end: Sequence[float], steps: int) -> float:
    if steps < FEW:
        return MARGIN_OF_FEW * abs(start[0])
    return MARGIN * math.sqrt((variance(start) + variance(end)) / len(start))
