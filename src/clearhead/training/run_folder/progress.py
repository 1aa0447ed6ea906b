"""The progress of a run: all that a checkpoint knows beside weights and optimiser state."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from clearhead.training.schedule import Pace

MOST_LOSSES = 20  # of the last steps, kept to tell whether the loss has risen


@dataclass(frozen=True)
class LogPosition:
    """How far the log had come: its length in bytes, and the SHA-256 of them."""

    bytes: int
    sha256: str

    def __post_init__(self) -> None:
        if self.bytes < 0:
            raise ValueError(f"a log cannot have {self.bytes} bytes.")


@dataclass
class Progress:
    """Where a run is, after ``step`` steps. Everything else follows from the seed and the step.

    ``pace`` is None while the number of steps is unknown. ``milestones`` are the steps of the last
    validations: their checkpoints are averaged at the end, those that a clock or a signal asked for
    are not, so that the result depends on neither.
    """

    step: int = 0
    pace: Pace | None = None
    seconds: float = 0.0  # that the run has taken, all its processes together
    best: tuple[float, int] | None = None  # validation loss, and at which step
    stale: int = 0  # validations since the best one
    loss: float | None = None  # of the last validation
    milestones: tuple[int, ...] = ()
    first: float | None = None  # the loss of the first step
    recent: tuple[float, ...] = ()  # losses of the last steps

    def __post_init__(self) -> None:
        counts = [self.step, self.stale, *self.milestones]
        counts += [] if self.best is None else [self.best[1]]
        if min(counts) < 0 or self.seconds < 0:
            raise ValueError("the progress of a run counts from 0.")
        if list(self.milestones) != sorted(set(self.milestones)):
            raise ValueError("milestones are steps in order.")
        if max([0, *self.milestones, *([] if self.best is None else [self.best[1]])]) > self.step:
            raise ValueError(f"the run has had {self.step} steps, and remembers later ones.")
        if len(self.recent) > MOST_LOSSES:
            raise ValueError(f"at most {MOST_LOSSES} losses are kept.")

    @property
    def total(self) -> int | None:
        """The number of steps of the run, as far as it is known."""
        return None if self.pace is None else self.pace.total

    def stepped(self, loss: float) -> None:
        """Count a step, and keep its loss: the first one, and the last ones."""
        self.step += 1
        self.first = loss if self.first is None else self.first
        self.recent = (*self.recent, loss)[-MOST_LOSSES:]

    def validated(self, loss: float) -> bool:
        """Note a validation loss; True if it is the best so far."""
        self.loss = loss
        better = self.best is None or loss < self.best[0]
        self.stale = 0 if better else self.stale + 1
        if better:
            self.best = (loss, self.step)
        return better

    def reached(self, most: int) -> None:
        """Note a milestone; the last ``most`` are kept."""
        self.milestones = (*self.milestones, self.step)[-most:]

    @property
    def at_milestone(self) -> bool:
        """True if this step is a milestone that was reached."""
        return self.milestones[-1:] == (self.step,)


@dataclass(frozen=True)
class Facts:
    """What a checkpoint says beside its tensors."""

    progress: Progress
    log: LogPosition
    settings: dict[str, Any] = field(default_factory=dict)
