"""The engine's KV cache: half precision, in the layout that the kernels read.

Layers without a sliding window keep every token. Layers with one keep the window, the tokens of a
step and some more (:data:`SPARE`): position p is stored at p modulo their capacity.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import torch
from jaxtyping import Float, Float16
from torch import Tensor

from clearhead.engine.kernels.structures import BLOCK, CHUNK, COLUMNS, KEYS
from clearhead.engine.weights import padded, rounded_up
from clearhead.errors import InputError

INITIAL_CAPACITY = 256  # tokens
SPARE = 256  # tokens before a window that are kept: so many can be dropped again, or wait for watch


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
    """Keys in blocks of 32, column by column; values in chunks of 128, 32 columns at a time."""

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
        larger = self._like(self.batch, needed)
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

    def read(
        self, layer: int, positions: range, key_dim: int, value_dim: int
    ) -> tuple[
        Float[Tensor, "batch kv_head position key_dim"],
        Float[Tensor, "batch kv_head position value_dim"],
    ]:
        """Keys and values of adjacent positions, as float32 copies."""
        key, value = self.keys[layer], self.values[layer]
        first, last = positions.start // KEYS, -(-positions.stop // KEYS)
        blocks = torch.arange(first, last) % key.shape[2]
        found = key[:, :, blocks].transpose(3, 4).flatten(2, 3)
        start = positions.start - first * KEYS
        keys = found[:, :, start : start + len(positions), :key_dim].float()
        first, last = positions.start // CHUNK, -(-positions.stop // CHUNK)
        chunks = torch.arange(first, last) % value.shape[2]
        found = value[:, :, chunks].transpose(3, 4).flatten(4).flatten(2, 3)
        start = positions.start - first * CHUNK
        return keys, found[:, :, start : start + len(positions), :value_dim].float()

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


class LayerCaches:
    """The cache of every layer: two tensors for the layers that keep all, two for windows.

    ``capacity`` is the number of tokens that a text may have before it grows. The layers with a
    window keep the last ``window_capacity`` of them at most.

    Raises:
        InputError: it would need more memory than this machine has.
    """

    def __init__(
        self, windows: list[int], batch: int, kv_heads: int, capacity: int, widths: tuple[int, int]
    ) -> None:
        self.capacity = rounded_up(max(capacity, 1), CHUNK)
        widest = max(windows, default=0)
        self.window_capacity = rounded_up(widest + BLOCK + SPARE, CHUNK)
        counts = {False: windows.count(0), True: len(windows) - windows.count(0)}
        self._caches = {
            windowed: EngineCache.empty(count, batch, kv_heads, self._room(windowed), *widths)
            for windowed, count in counts.items()
            if count
        }
        self.layers = [
            (self._caches[window > 0], [w > 0 for w in windows[:number]].count(window > 0))
            for number, window in enumerate(windows)
        ]

    @property
    def nbytes(self) -> int:
        """The size in bytes."""
        return sum(cache.keys.nbytes + cache.values.nbytes for cache in self._caches.values())

    def grow(self, needed: int, used: int) -> None:
        """Grow to at least ``needed`` tokens; the first ``used`` are kept."""
        self.capacity = rounded_up(max(needed, 2 * self.capacity), CHUNK)
        for windowed, cache in self._caches.items():
            if cache.capacity < self._room(windowed):
                cache.grow(self._room(windowed), used)

    def reorder(self, rows: list[int], used: int) -> None:
        """Replace row i by the old row ``rows[i]``."""
        for cache in self._caches.values():
            cache.reorder(rows, min(used, cache.capacity))

    def fill(self, layer: int, key: Tensor, value: Tensor) -> None:
        """Store the keys and values of a whole text in one layer."""
        cache, number = self.layers[layer]
        cache.fill(number, key, value)

    def keeps(self, first: int, stored: int) -> bool:
        """True if the layers with a window still have position ``first`` of ``stored`` tokens."""
        cache = self._caches.get(True)
        return cache is None or max(first, 0) >= stored - cache.capacity

    def _room(self, windowed: bool) -> int:
        return min(self.capacity, self.window_capacity) if windowed else self.capacity
