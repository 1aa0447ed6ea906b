"""What a training run tells whoever listens."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias


@dataclass(frozen=True)
class Started:
    """The run begins, or continues after ``step`` steps; ``total`` is None while it is unknown."""

    step: int
    total: int | None
    parameters: int
    batches_per_pass: int


@dataclass(frozen=True)
class Stepped:
    """One step: mean loss of its tokens before it, in nats, and how long it took."""

    step: int  # counted from 1
    loss: float
    tokens: int
    seconds: float
    rate: float  # share of the peak learning rate
    gradient: float  # its norm, before clipping
    total: int | None


@dataclass(frozen=True)
class Validated:
    """The mean loss of a validation token, without label smoothing."""

    step: int
    loss: float
    best: bool


@dataclass(frozen=True)
class Sampled:
    """What the model writes by now; for pairs, ``prompt`` is the source."""

    step: int
    prompt: str
    text: str


@dataclass(frozen=True)
class Saved:
    """A checkpoint is on disk, whole."""

    step: int
    path: Path


@dataclass(frozen=True)
class Finished:
    """The run is over; ``loss`` is the final model's on the validation set."""

    step: int
    reason: Literal["steps", "patience"]
    loss: float | None
    weights: str  # which weights the final model has: of which step, or averaged


Event: TypeAlias = Started | Stepped | Validated | Sampled | Saved | Finished
