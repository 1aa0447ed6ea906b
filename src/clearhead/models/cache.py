"""The key-value caches of all layers of a model."""

from __future__ import annotations

from dataclasses import dataclass, field

from jaxtyping import Int
from torch import Tensor

from clearhead.arguments import flag, whole_number
from clearhead.attention.cache import KVCache

MOST_LAYERS = 2**16


@dataclass
class ModelCache:
    """One cache for each self-attention, and for each cross-attention the projected source.

    The operations are those of :class:`clearhead.KVCache`, done for every layer.
    """

    layers: list[KVCache]
    cross_layers: list[KVCache] = field(default_factory=list)
    source_counts: Int[Tensor, " batch"] | None = None  # real tokens of each source, if they differ

    @classmethod
    def for_layers(cls, layers: int, *, cross: bool = False, capacity: int = 0) -> ModelCache:
        """Return an empty cache for ``layers`` layers."""
        layers = whole_number("layers", layers, least=1, most=MOST_LAYERS)
        cross = flag("cross", cross)
        return cls(
            [KVCache(capacity) for _ in range(layers)],
            [KVCache() for _ in range(layers)] if cross else [],
        )

    @property
    def length(self) -> int:
        """Tokens so far, in the longest row."""
        return self.layers[0].length

    @property
    def lengths(self) -> Int[Tensor, " batch"]:
        """Tokens so far, in each row."""
        return self.layers[0].lengths

    @property
    def rows(self) -> int | None:
        """The number of rows of the batch that it holds; None while it is empty."""
        return self.layers[0].rows

    def positions(self, count: int) -> Int[Tensor, "#batch {count}"]:
        """Positions of the next ``count`` tokens of each row."""
        return self.layers[0].positions(count)

    def crop(self, length: int) -> None:
        """Forget everything from position ``length`` on; the source stays."""
        for layer in self.layers:
            layer.crop(length)

    def reorder(self, rows: Int[Tensor, " beam"]) -> None:
        """Make row i what row ``rows[i]`` was."""
        for layer in (*self.layers, *self.cross_layers):
            layer.reorder(rows)
        if self.source_counts is not None:
            self.source_counts = self.source_counts[rows]

    def reset(self) -> None:
        """Forget everything but keep the allocated memory."""
        for layer in (*self.layers, *self.cross_layers):
            layer.reset()
        self.source_counts = None
