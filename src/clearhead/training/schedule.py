"""Learning rate schedules, and how long a run still takes.

After the warm-up there are three schedules:

=======================  =======================================================================
``cosine``               half a cosine from 1 down to the floor
``inverse-square-root``  1/√step, the paper's (Vaswani et al. 2017, section 5.3)
``linear``               1, and over the last share of the steps straight down to the floor
=======================  =======================================================================

A run of so many minutes does not know its number of steps, and other programs on the machine come
and go. So every few per cent of its time it estimates anew after which step it ends
(:class:`Stopwatch`). The share of the run that is done goes on from where it was (:class:`Pace`),
so that the learning rate, which follows it, never jumps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from clearhead.training.settings import TrainingSettings

MEASURED_SHARE, MEASURED_STEPS = 0.04, 20  # of the time, or so many steps if that is less
AGAIN = 0.025  # of the time, from one estimate to the next; or this part of the steps left:
PART = 8
LONGEST_WARMUP = 0.25  # of a run: a short one warms up for fewer steps than it is asked for


@dataclass(frozen=True)
class Pace:
    """The run ends after ``total`` steps; after ``step`` steps the share ``done`` of it was done.

    >>> Pace(total=100).place(50)
    50.0
    >>> Pace(total=40, step=20, done=0.75).place(30)  # 0.75 and half of the rest, of 40 steps
    35.0
    """

    total: int
    step: int = 0
    done: float = 0.0

    def __post_init__(self) -> None:
        if not (0 <= self.step <= self.total and 0 <= self.done <= 1):
            raise ValueError(f"{self} goes backwards: a run goes on from its step to its total.")

    def place(self, step: int) -> float:
        """The place in the run, as a step of a run that had this total from its beginning."""
        if self.step == 0 and self.done == 0:
            return float(step)
        left = (self.total - step) / max(1, self.total - self.step)
        return self.total * (1 - (1 - self.done) * left)

    @classmethod
    def estimated(
        cls, before: Pace | None, step: int, *, seconds_per_step: float, left: float
    ) -> Pace:
        """The pace after ``step`` steps, if a step takes so long and ``left`` seconds are left.

        No step follows where the time is over.

        >>> Pace.estimated(None, 20, seconds_per_step=0.5, left=40.0)
        Pace(total=100, step=20, done=0.2)
        """
        total = step + max(0, round(left / max(seconds_per_step, 1e-9)))
        if before is None or before.total <= step:
            return cls(total, step, step / total)
        return cls(total, step, min(1.0, before.place(step) / before.total))


class Stopwatch:
    """The time of a run of so many minutes: how much is left, and what a step takes.

    ``before`` are the seconds that earlier lives of the run have taken.
    """

    def __init__(self, minutes: float, before: float = 0.0) -> None:
        self.limit, self.before = 60 * minutes, before
        self.estimated_at: float | None = None  # seconds, when the last estimate was made
        self.expected = 0  # steps that were left then
        self.steps, self.seconds = 0, 0.0  # since then
        self.validation = 0.0  # seconds that the last one took, with its checkpoint

    def stepped(self, seconds: float) -> None:
        """Count a step."""
        self.steps += 1
        self.seconds += seconds

    def due(self, now: float, running: int = 0) -> bool:
        """True if it is time for an estimate, ``now`` seconds after this life of the run began.

        ``running`` is 1 while a step is under way that is not counted yet.
        """
        done, left = self.steps + running, self.limit - self.before - now
        if done == 0:
            return False
        if self.estimated_at is None:
            enough = done >= MEASURED_STEPS or now >= MEASURED_SHARE * self.limit
            return (done >= 2 and enough) or left <= now / done  # no time for a second one
        if done >= self.expected:  # the last step: only if far too much time is left
            return left > AGAIN * self.limit
        late = now - self.estimated_at >= AGAIN * self.limit
        return late or done >= max(PART, self.expected // PART)

    def estimated(
        self, pace: Pace | None, step: int, now: float, *, validate_every: int, endings: int
    ) -> Pace:
        """The pace from ``step`` on, if steps and validations go on to take as long as they do.

        At the end of a run come ``endings`` validations more.
        """
        per_step = self.seconds / self.steps + self.validation / validate_every
        left = self.limit - self.before - now - endings * self.validation
        found = Pace.estimated(pace, step, seconds_per_step=per_step, left=left)
        self.estimated_at, self.steps, self.seconds = now, 0, 0.0
        self.expected = found.total - step
        return found


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
