"""A training task: the model, its tokenizer, its batches and its validation set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from clearhead.checkpoints.adapters.base import Base
from clearhead.models.build import Model
from clearhead.text.tokenizer import Tokenizer
from clearhead.training.data.batches.batch import Batch
from clearhead.training.objectives.objective import Objective


@runtime_checkable
class Batches(Protocol):
    """An endless sequence of batches; batch number n is always the same."""

    batches_per_pass: int

    def batch(self, number: int) -> Batch:
        """Batch ``number``, counted from 0."""


@dataclass(frozen=True)
class Task:
    """A model, its tokenizer, the batches to train on and those to validate on.

    ``sample`` lets the model generate something: it returns a prompt and the generated text.
    """

    model: Model
    tokenizer: Tokenizer | None
    batches: Batches
    validation: Sequence[Batch] = ()
    sample: Callable[[], tuple[str, str]] | None = None
    tokens: tuple[int, int] = (0, 0)  # of the training and the validation texts
    bytes_per_token: float | None = None  # of the validation texts, in UTF-8
    objective: Objective | None = None  # else the one that fits the model's kind
    further: bool = False  # the model was trained before: it is validated before the first step
    base: Base | None = None  # of adapters: the model that they are for
    notes: tuple[str, ...] = ()  # what somebody should know about the data
    validated: int | None = None  # tokens that are predicted in each validation; None: all
    held_out: str = ""  # what was held out of the texts, where it was just decided
