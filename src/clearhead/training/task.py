"""What a run needs besides its settings: the model, what it learns from, how it is tried."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from clearhead.models.decoder import Decoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.text.tokenizer import Tokenizer
from clearhead.training.batch import Batch


@runtime_checkable
class Batches(Protocol):
    """Batches without end; batch number n is always the same."""

    batches_per_pass: int

    def batch(self, number: int) -> Batch:
        """Batch ``number``, counted from 0."""


@dataclass(frozen=True)
class Task:
    """A model, its tokenizer, what it learns from and what it is validated on.

    ``sample`` lets the model write something: it returns a prompt and what came of it.
    """

    model: Decoder | EncoderDecoder
    tokenizer: Tokenizer | None
    batches: Batches
    validation: Sequence[Batch] = ()
    sample: Callable[[], tuple[str, str]] | None = None
