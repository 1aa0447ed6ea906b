"""Learning rate schedules, and the number of steps that fit into a time.

After the warm-up there are three schedules:

=======================  =======================================================================
``cosine``               half a cosine from 1 down to the floor
``inverse-square-root``  1/√step, the paper's (Vaswani et al. 2017, section 5.3)
``linear``               1, and over the last share of the steps straight down to the floor
=======================  =======================================================================
"""

from __future__ import annotations

import math

from clearhead.training.settings import TrainingSettings


def rate_factor(settings: TrainingSettings, step: int, total: int | None) -> float:
    """The factor of the learning rate at a step, counted from 0.

    ``total`` is None while the number of steps is not known yet; then the rate does not decay.
    """
    warmup = settings.warmup if total is None else min(settings.warmup, total)
    if step < warmup:
        return (step + 1) / warmup
    if settings.schedule == "inverse-square-root":
        return math.sqrt(max(warmup, 1) / (step + 1))
    if total is None:
        return 1.0
    if settings.schedule == "cosine":
        done = (step - warmup) / max(total - warmup, 1)
        fall = 0.5 * (1 + math.cos(math.pi * done))
    else:
        falling = max(1.0, settings.cooldown * total)
        fall = min(1.0, (total - step) / falling)
    return settings.floor + (1 - settings.floor) * fall


MEASURED_SHARE, MEASURED_STEPS = 0.04, 20  # of the time, or so many steps if that is less
SPARE = 0.95  # the rest goes into validations and checkpoints


def planned_steps(step: int, spent: float, minutes: float) -> int | None:
    """The number of steps that fit into the minutes; None while it is too early to estimate."""
    enough = step >= MEASURED_STEPS or spent >= MEASURED_SHARE * 60 * minutes
    if step < 2 or not enough:
        return None
    return max(step + 1, int(SPARE * 60 * minutes * step / spent))
