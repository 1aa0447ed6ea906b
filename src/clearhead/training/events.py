"""The events of a training run, in the order in which they first happen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from clearhead.models.config import ModelConfig
from clearhead.training.head_statistics import HeadStatistics


@dataclass(frozen=True)
class Read:
    """The texts of a new run are read: ``done`` of ``total`` bytes. Short texts tell nothing.

    First all of them are surveyed (lengths, copies), then a vocabulary is made, then they are
    tokenised; ``total`` is 0 where it is unknown.
    """

    what: Literal["surveying", "making the vocabulary", "tokenising"]
    done: int
    total: int


@dataclass(frozen=True)
class Started:
    """The run begins, or continues after ``step`` steps; ``total`` is None while it is unknown."""

    step: int
    total: int | None
    parameters: int
    batches_per_pass: int
    config: ModelConfig
    tokens: tuple[int, int] = (0, 0)  # of the training and the validation texts
    trained: int | None = None  # parameters that change; fewer than all with freeze or lora
    validated: int | None = None  # tokens that are predicted in each validation; None: all
    held_out: str = ""  # what was held out of the texts; nothing is said when a run is resumed


@dataclass(frozen=True)
class Stepped:
    """One step: the mean loss of its tokens before the update, in nats, and its duration."""

    step: int  # counted from 1
    loss: float
    tokens: int
    seconds: float
    rate: float  # share of the peak learning rate
    gradient: float  # its norm, before clipping
    total: int | None
    learning_rate: float = 0.0  # AdamW's in this step


@dataclass(frozen=True)
class Validated:
    """The mean loss of a validation token, without label smoothing.

    ``bits_per_byte`` is the loss by the length of the text, so that vocabularies compare. ``heads``
    says of each head how it attends to the first batch: entropy, largest score, first token.
    """

    step: int
    loss: float
    best: bool
    bits_per_byte: float | None = None
    heads: Mapping[str, HeadStatistics] = field(default_factory=dict)


@dataclass(frozen=True)
class Sampled:
    """A sample of what the model generates now; for pairs, ``prompt`` is the source."""

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
    """The run is over; ``loss`` is the final model's on the validation set.

    ``folder`` holds the final model: ``ch.load(folder)`` opens it. It is None only for a loop that
    was run without a folder.
    """

    step: int
    reason: Literal["steps", "patience"]
    loss: float | None
    weights: str  # which weights the final model has: of which step, or averaged
    folder: Path | None = None
    rose: bool = False  # the loss at the end is above that of the beginning


@dataclass(frozen=True)
class Stopped:
    """Somebody stopped the run before its end. ``path`` is the checkpoint that continues it."""

    step: int
    path: Path | None


@dataclass(frozen=True)
class Warned:
    """Something is wrong that does not stop the run: a damaged file, a loss that rises."""

    step: int
    message: str
    hint: str | None = None


Event: TypeAlias = (
    Read | Started | Stepped | Validated | Sampled | Saved | Stopped | Warned | Finished
)
