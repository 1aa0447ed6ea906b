"""The engine's KV cache: half precision, laid out as the kernels read it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Float16
from torch import Tensor

from clearhead.generation.engine_structures import CHUNK, COLUMNS, KEYS
from clearhead.generation.engine_weights import padded, rounded_up

FIRST_ROOM = 256  # tokens


@dataclass
class EngineCache:
    """Keys in blocks of 32, column by column; values in chunks, 32 columns after the other.

    Grows by doubling.
    """

    keys: Float16[Tensor, "layer batch kv_head block key_width lane"]
    values: Float16[Tensor, "layer batch kv_head chunk columns place lane"]

    @classmethod
    def empty(
        cls, layers: int, batch: int, kv_heads: int, room: int, key_width: int, value_width: int
    ) -> EngineCache:
        """Room for ``room`` tokens in each row, rounded up to whole chunks."""
        room = rounded_up(max(room, 1), CHUNK)
        front = (layers, batch, kv_heads)
        return cls(
            torch.zeros(*front, room // KEYS, key_width, KEYS, dtype=torch.float16),
            torch.zeros(
                *(*front, room // CHUNK, value_width // COLUMNS, CHUNK, COLUMNS),
                dtype=torch.float16,
            ),
        )

    @property
    def batch(self) -> int:
        """How many rows there are."""
        return self.keys.shape[1]

    @property
    def room(self) -> int:
        """How many tokens fit into each row."""
        return self.values.shape[3] * CHUNK

    def grow(self, needed: int, used: int) -> None:
        """Make room for ``needed`` tokens, keeping the first ``used``."""
        larger = self._like(self.batch, max(needed, 2 * self.room))
        self._copy(self, larger, None, used)
        self.keys, self.values = larger.keys, larger.values

    def reorder(self, rows: list[int], used: int) -> None:
        """Make row i what row ``rows[i]`` was."""
        other = self._like(len(rows), self.room)
        self._copy(self, other, torch.tensor(rows, dtype=torch.int64), used)
        self.keys, self.values = other.keys, other.values

    def fill(
        self,
        layer: int,
        key: Float[Tensor, "batch position kv_head key_dim"],
        value: Float[Tensor, "batch position kv_head value_dim"],
    ) -> None:
        """Put in whole keys and values: the source of an encoder-decoder."""
        batch, _, kv_heads, _ = key.shape
        key_width, columns = self.keys.shape[4], self.values.shape[4]
        wide = padded(key, batch, self.room, kv_heads, key_width)
        apart = wide.view(batch, -1, KEYS, kv_heads, key_width)
        self.keys[layer] = apart.permute(0, 3, 1, 4, 2).half()
        wide = padded(value, batch, self.room, kv_heads, columns * COLUMNS)
        apart = wide.view(batch, -1, CHUNK, kv_heads, columns, COLUMNS)
        self.values[layer] = apart.permute(0, 3, 1, 4, 2, 5).half()

    def strides(self) -> tuple[int, int, int, int]:
        """Bytes from row to row and head to head: of keys, then of values."""
        return (
            2 * self.keys.stride(1),
            2 * self.keys.stride(2),
            2 * self.values.stride(1),
            2 * self.values.stride(2),
        )

    def _like(self, batch: int, room: int) -> EngineCache:
        layers, _, kv_heads, _, key_width, _ = self.keys.shape
        value_width = self.values.shape[4] * COLUMNS
        return EngineCache.empty(layers, batch, kv_heads, room, key_width, value_width)

    @staticmethod
    def _copy(source: EngineCache, target: EngineCache, rows: Tensor | None, used: int) -> None:
        blocks, chunks = -(-used // KEYS), -(-used // CHUNK)
        for layer in range(source.keys.shape[0]):
            keys, values = source.keys[layer], source.values[layer]
            if rows is not None:
                keys, values = keys[rows], values[rows]
            target.keys[layer, :, :, :blocks] = keys[:, :, :blocks]
            target.values[layer, :, :, :chunks] = values[:, :, :chunks]
