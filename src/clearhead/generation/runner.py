"""What decoding asks of whatever runs the model: add tokens, get logits, forget, reorder."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor


@runtime_checkable
class Runner(Protocol):
    """Runs a model over the tokens of one batch, which it remembers (its KV cache).

    The first ``extend`` fixes the batch. Logits are float32 on the CPU. A row's result does not
    depend on its neighbours. Of an encoder-decoder model the rows are the decoder's tokens; the
    runner is made for its sources and knows them.
    """

    vocab: int
    context: int | None  # how many tokens fit; None: no bound

    @property
    def length(self) -> int:
        """Tokens so far, in the longest row."""
        ...

    @property
    def lengths(self) -> list[int]:
        """Tokens so far, in each row."""
        ...

    def extend(self, rows: list[list[int]]) -> Float[Tensor, "batch vocab"]:
        """Add tokens to each row, at least one, as many as each likes; logits after the last."""
        ...

    def extend_all(self, ids: list[int]) -> Float[Tensor, "query vocab"]:
        """Add tokens to the only row; logits after each of them."""
        ...

    def crop(self, length: int) -> None:
        """Forget everything from position ``length`` on, in all rows; a source stays."""
        ...

    def reorder(self, rows: list[int]) -> None:
        """Make row i what row ``rows[i]`` was; there may be more or fewer rows afterwards."""
        ...
