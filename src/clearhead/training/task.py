"""A training task: the model, its tokenizer, its batches and its validation set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from clearhead.models.decoder import Decoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.text.tokenizer import Tokenizer
from clearhead.training.data.batch import Batch


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

    model: Decoder | EncoderDecoder
    tokenizer: Tokenizer | None
    batches: Batches
    validation: Sequence[Batch] = ()
    sample: Callable[[], tuple[str, str]] | None = None
    tokens: tuple[int, int] = (0, 0)  # of the training and the validation texts
