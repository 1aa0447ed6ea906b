"""The learning rate over time: a warm-up, and then one of three ways down.

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
    """What the learning rate is multiplied with at a step, counted from 0.

    ``total`` is None as long as nobody knows how many steps there will be: warm-up knows no end.
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
