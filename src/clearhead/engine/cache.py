"""The engine's KV cache: half precision, in the layout that the kernels read."""

from __future__ import annotations

import os
from dataclasses import dataclass

import torch
from jaxtyping import Float, Float16
from torch import Tensor

from clearhead.engine.kernels.structures import CHUNK, COLUMNS, KEYS
from clearhead.engine.weights import padded, rounded_up
from clearhead.errors import InputError

INITIAL_CAPACITY = 256  # tokens


def check_memory(batch: int, capacity: int, token_bytes: int) -> None:
    """Raise an InputError if a cache needs more memory than this machine has."""
    if not hasattr(os, "sysconf"):
        return
    needed, there = batch * capacity * token_bytes, os.sysconf("SC_PHYS_PAGES")
    there *= os.sysconf("SC_PAGE_SIZE")
    if needed > there:
        raise InputError(
            f"the keys and values of {batch} texts of up to {capacity} tokens need "
            f"{needed / 1e9:,.0f} GB, and this machine has {there / 1e9:,.0f}.",
            hint="generate fewer texts at once, or shorter ones.",
        )


@dataclass
class EngineCache:
    """Keys in blocks of 32, column by column; values in chunks of 128 keys, 32 columns at a time.

    The capacity grows by doubling.
    """

    keys: Float16[Tensor, "layer batch kv_head block key_width lane"]
    values: Float16[Tensor, "layer batch kv_head chunk columns position lane"]

    @classmethod
    def empty(
        cls, layers: int, batch: int, kv_heads: int, capacity: int, key_width: int, value_width: int
    ) -> EngineCache:
        """Make a cache for ``capacity`` tokens in each row, rounded up to whole chunks.

        Raises:
            InputError: it would need more memory than this machine has.
        """
        capacity = rounded_up(max(capacity, 1), CHUNK)
        check_memory(batch, capacity, 2 * layers * kv_heads * (key_width + value_width))
        front = (layers, batch, kv_heads)
        return cls(
            torch.zeros(*front, capacity // KEYS, key_width, KEYS, dtype=torch.float16),
            torch.zeros(
                *(*front, capacity // CHUNK, value_width // COLUMNS, CHUNK, COLUMNS),
                dtype=torch.float16,
            ),
        )

    @property
    def batch(self) -> int:
        """The number of rows."""
        return self.keys.shape[1]

    @property
    def capacity(self) -> int:
        """The number of tokens that fit into each row."""
        return self.values.shape[3] * CHUNK

    def grow(self, needed: int, used: int) -> None:
        """Grow to at least ``needed`` tokens; the first ``used`` are kept."""
        larger = self._like(self.batch, max(needed, 2 * self.capacity))
        self._copy(self, larger, None, used)
        self.keys, self.values = larger.keys, larger.values

    def reorder(self, rows: list[int], used: int) -> None:
        """Replace row i by the old row ``rows[i]``."""
        other = self._like(len(rows), self.capacity)
        self._copy(self, other, torch.tensor(rows, dtype=torch.int64), used)
        self.keys, self.values = other.keys, other.values

    def fill(
        self,
        layer: int,
        key: Float[Tensor, "batch position kv_head key_dim"],
        value: Float[Tensor, "batch position kv_head value_dim"],
    ) -> None:
        """Store the keys and values of a whole source, for cross-attention.

        A key that half precision cannot hold makes its value NaN: softmax would hide it.
        """
        value = value + (0.0 * key.half()).sum(-1, keepdim=True)
        batch, _, kv_heads, _ = key.shape
        key_width, columns = self.keys.shape[4], self.values.shape[4]
        wide = padded(key, batch, self.capacity, kv_heads, key_width)
        blocks = wide.view(batch, -1, KEYS, kv_heads, key_width)
        self.keys[layer] = blocks.permute(0, 3, 1, 4, 2).half()
        wide = padded(value, batch, self.capacity, kv_heads, columns * COLUMNS)
        blocks = wide.view(batch, -1, CHUNK, kv_heads, columns, COLUMNS)
        self.values[layer] = blocks.permute(0, 3, 1, 4, 2, 5).half()

    def strides(self) -> tuple[int, int, int, int]:
        """Strides in bytes: key row, key head, value row, value head."""
        return (
            2 * self.keys.stride(1),
            2 * self.keys.stride(2),
            2 * self.values.stride(1),
            2 * self.values.stride(2),
        )

    def _like(self, batch: int, capacity: int) -> EngineCache:
        layers, _, kv_heads, _, key_width, _ = self.keys.shape
        value_width = self.values.shape[4] * COLUMNS
        return EngineCache.empty(layers, batch, kv_heads, capacity, key_width, value_width)

    @staticmethod
    def _copy(source: EngineCache, target: EngineCache, rows: Tensor | None, used: int) -> None:
        blocks, chunks = -(-used // KEYS), -(-used // CHUNK)
        for layer in range(source.keys.shape[0]):
            keys, values = source.keys[layer], source.values[layer]
            if rows is not None:
                keys, values = keys[rows], values[rows]
            target.keys[layer, :, :, :blocks] = keys[:, :, :blocks]
            target.values[layer, :, :, :chunks] = values[:, :, :chunks]
