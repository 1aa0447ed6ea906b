"""The runner protocol: a model with its KV cache. Add tokens, get logits, crop, reorder."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor


@runtime_checkable
class Runner(Protocol):
    """Runs a model over the tokens of one batch and keeps their KV cache.

    The first ``extend`` fixes the number of rows. Logits are float32 on the CPU. The result of a
    row does not depend on the other rows. For an encoder-decoder model the rows are the decoder's
    tokens, and the runner is constructed with the sources.
    """

    vocab: int
    context: int | None  # the context length; None: unlimited

    @property
    def length(self) -> int:
        """The number of tokens in the longest row."""
        ...

    @property
    def lengths(self) -> list[int]:
        """The number of tokens in each row."""
        ...

    def extend(self, rows: list[list[int]]) -> Float[Tensor, "batch vocab"]:
        """Add one or more tokens to each row; return the logits after each row's last token."""
        ...

    def extend_all(self, ids: list[int]) -> Float[Tensor, "query vocab"]:
        """Add tokens to the only row; return the logits after each of them."""
        ...

    def crop(self, length: int) -> None:
        """Drop all tokens from position ``length`` on, in all rows; the sources stay."""
        ...

    def reorder(self, rows: list[int]) -> None:
        """Replace row i by the old row ``rows[i]``; the number of rows may change."""
        ...
