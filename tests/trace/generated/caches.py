"""Caches of keys and values, as models keep them between the steps of generation."""

from __future__ import annotations

import torch
from torch import Tensor

SLOTS = 9  # of a ring
LONGEST = 17  # of a preallocated buffer


class Cache:
    """Keys and values of every layer; ``columns`` says which position stands in which column."""

    def __init__(self, style: str) -> None:
        self.style, self.length = style, 0
        self.columns = torch.arange(0)
        self._slots = torch.arange(0)
        self._kept: dict[int, list[Tensor]] = {}  # by layer

    def advance(self, count: int) -> None:
        """Make room for the next positions: layers write them in their turn."""
        positions = torch.arange(self.length, self.length + count)
        self.length += count
        if self.style in ("cat", "crop"):
            self.columns = torch.cat([self.columns, positions])
            return
        size = SLOTS if self.style == "ring" else LONGEST
        if not len(self.columns):
            self.columns = torch.full((size,), -1)
        self._slots = positions % size
        self.columns = self.columns.clone()
        self.columns[self._slots] = positions

    def crop(self, length: int) -> None:
        """Forget what came after: another continuation follows."""
        self.length, self.columns = length, self.columns[:length]
        for kept in self._kept.values():
            kept[:] = [part[:, :, :length] for part in kept]

    def visible_columns(self) -> Tensor:
        """The positions of the columns that a layer gets."""
        return self.columns[: self.length] if self.style == "index, slice" else self.columns

    def update(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Write new keys and values; returns those that the layer attends to."""
        new = [key, value]
        if self.style in ("cat", "crop"):
            old = self._kept.get(layer)
            kept = (
                new
                if old is None
                else [torch.cat(pair, dim=2) for pair in zip(old, new, strict=True)]
            )
        else:
            kept = self._kept.get(layer) or [self._empty(part) for part in new]
            for part, written in zip(kept, new, strict=True):
                part[:, :, self._slots] = written
        self._kept[layer] = kept
        key, value = kept
        if self.style == "index, slice":
            key, value = (part[:, :, : self.length] for part in kept)
        return key, value

    def _empty(self, part: Tensor) -> Tensor:
        return part.new_zeros(*part.shape[:2], len(self.columns), part.shape[3])
