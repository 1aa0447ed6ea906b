"""Learning rate schedules.

After the warm-up there are three schedules:

=======================  =======================================================================
``cosine``               half a cosine from 1 down to the floor
``inverse-square-root``  1/√step, the paper's (Vaswani et al. 2017, section 5.3)
``linear``               1, and over the last share of the steps straight down to the floor
=======================  =======================================================================
"""

from __future__ import annotations

import math

from clearhead.training.pace import Pace
from clearhead.training.settings import TrainingSettings

LONGEST_WARMUP = 0.25  # of a run: a short one warms up for fewer steps than it is asked for


def rate_factor(settings: TrainingSettings, step: int, pace: Pace | None) -> float:
    """The factor of the learning rate at a step, counted from 0.

    ``pace`` is None while the number of steps is not known yet; then the rate does not decay.
    """
    warmup = warmup_steps(settings, pace)
    if step < warmup:
        return (step + 1) / warmup
    if settings.schedule == "inverse-square-root":
        return math.sqrt(max(warmup, 1) / (step + 1))
    if pace is None:
        return 1.0
    place, total = pace.place(step), pace.total
    if settings.schedule == "cosine":
        done = (place - warmup) / max(total - warmup, 1)
        fall = 0.5 * (1 + math.cos(math.pi * done))
    else:
        falling = max(1.0, min(settings.cooldown * total, total - warmup))
        fall = min(1.0, (total - place) / falling)
    return settings.floor + (1 - settings.floor) * min(1.0, max(0.0, fall))


def warmup_steps(settings: TrainingSettings, pace: Pace | None) -> int:
    """How many steps the warm-up takes: as asked for, but a quarter of the run at most."""
    if pace is None:
        return settings.warmup
    return min(settings.warmup, max(1, int(LONGEST_WARMUP * pace.total)))
