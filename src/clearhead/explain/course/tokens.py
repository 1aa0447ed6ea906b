"""The tokenizer of a model whose numbers the course shows."""

from __future__ import annotations

from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.text.tokenizer import Tokenizer


def tokenizer_of(loaded: Loaded) -> Tokenizer:
    """The tokenizer; a model without one is refused."""
    if loaded.tokenizer is None:
        raise InputError(f"{loaded.name} has no tokenizer, and its numbers are shown with words.")
    return loaded.tokenizer
