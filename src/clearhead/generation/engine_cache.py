"""The engine's KV cache: half precision, laid out as the kernels read it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Float16
from torch import Tensor

from clearhead.generation.engine_structures import CHUNK, TILE
from clearhead.generation.engine_weights import rounded_up

FIRST_ROOM = 256  # tokens


@dataclass
class EngineCache:
    """Keys in blocks of 16, column by column; values row by row. Grows by doubling."""

    keys: Float16[Tensor, "layer batch kv_head block key_width lane"]
    values: Float16[Tensor, "layer batch kv_head position value_width"]

    @classmethod
    def empty(
        cls, layers: int, batch: int, kv_heads: int, room: int, key_width: int, value_width: int
    ) -> EngineCache:
        """Room for ``room`` tokens in each row, rounded up to whole chunks."""
        room = rounded_up(max(room, 1), CHUNK)
        front = (layers, batch, kv_heads)
        return cls(
            torch.zeros(*front, room // TILE, key_width, TILE, dtype=torch.float16),
            torch.zeros(*front, room, value_width, dtype=torch.float16),
        )

    @property
    def batch(self) -> int:
        """How many rows there are."""
        return self.keys.shape[1]

    @property
    def room(self) -> int:
        """How many tokens fit into each row."""
        return self.values.shape[3]

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
        batch, count, _, key_dim = key.shape
        blocks = rounded_up(count, TILE) // TILE
        wide = key.new_zeros(batch, blocks * TILE, *key.shape[2:])
        wide[:, :count] = key
        apart = wide.view(batch, blocks, TILE, *key.shape[2:]).permute(0, 3, 1, 4, 2)
        self.keys[layer, :, :, :blocks, :key_dim] = apart.half()
        self.values[layer, :, :, :count, : value.shape[3]] = value.transpose(1, 2).half()

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
        return EngineCache.empty(layers, batch, kv_heads, room, key_width, self.values.shape[4])

    @staticmethod
    def _copy(source: EngineCache, target: EngineCache, rows: Tensor | None, used: int) -> None:
        blocks = -(-used // TILE)
        for layer in range(source.keys.shape[0]):
            keys, values = source.keys[layer], source.values[layer]
            if rows is not None:
                keys, values = keys[rows], values[rows]
            target.keys[layer, :, :, :blocks] = keys[:, :, :blocks]
            target.values[layer, :, :, :used] = values[:, :, :used]
