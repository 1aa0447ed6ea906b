"""Tiles: how the blocks of 16 rows of a matrix lie in memory. One layout for each kind.

A tile holds 16 rows. The blocks of its rows that lie above one another are stored together, cut
into pieces of two or four bytes: the first piece of each of the 16 rows, then the second … So one
load brings the same piece of all rows, one row in each lane, and no sum across lanes is needed. A
tile is as large as its rows in the file, and nothing is lost: taken apart again, it is the file's
blocks.

A ``Field`` is a run of pieces of one size in a block. Two are changed while they are moved, so that
the products need not do it: bytes with a sign are stored plus 128 (Q8_0), and 32 single bits are
reordered so that those of columns 4j … 4j + 3 are bit j of four bytes (Q5_0, Q5_1).
"""

from __future__ import annotations

import ctypes
import functools
from typing import NamedTuple

from clearhead.checkpoints.gguf.kinds import kind_named
from clearhead.engine.kernels.structures import GROUP, TILE

AS_IT_IS, PLUS_128, SPREAD_BITS = range(3)


class Field(NamedTuple):
    """``pieces`` of ``size`` bytes from byte ``start`` of a block."""

    start: int
    size: int
    pieces: int
    change: int = AS_IT_IS


FIELDS = {
    "F32": (Field(0, 4, GROUP),),
    "F16": (Field(0, 2, GROUP),),
    "BF16": (Field(0, 2, GROUP),),
    "Q4_0": (Field(0, 2, 1), Field(2, 4, 4)),
    "Q4_1": (Field(0, 2, 2), Field(4, 4, 4)),
    "Q5_0": (Field(0, 2, 1), Field(2, 4, 1, SPREAD_BITS), Field(6, 4, 4)),
    "Q5_1": (Field(0, 2, 2), Field(4, 4, 1, SPREAD_BITS), Field(8, 4, 4)),
    "Q8_0": (Field(0, 2, 1), Field(2, 4, 8, PLUS_128)),
    "Q2_K": (Field(0, 4, 20), Field(80, 2, 2)),
    "Q3_K": (Field(0, 4, 27), Field(108, 2, 1)),
    "Q4_K": (Field(0, 2, 2), Field(4, 4, 35)),
    "Q5_K": (Field(0, 2, 2), Field(4, 4, 43)),
    "Q6_K": (Field(0, 4, 52), Field(208, 2, 1)),
}
"""The kinds that the engine has products for. Single numbers count as blocks of 32."""


class Layout(NamedTuple):
    """A kind as the kernels see it: numbers and bytes of a block, and its fields."""

    kind: str
    length: int
    bytes: int
    fields: tuple[Field, ...]

    @classmethod
    @functools.cache
    def of(cls, kind: str) -> Layout:
        """The layout of a kind in FIELDS."""
        stored = kind_named(kind)
        times = GROUP if stored.block_length == 1 else 1
        return cls(kind, stored.block_length * times, stored.block_bytes * times, FIELDS[kind])

    def blocks(self, groups: int) -> int:
        """The number of blocks in a row of so many groups of 32."""
        return groups * GROUP // self.length

    def tile_bytes(self, groups: int) -> int:
        """The number of bytes of a tile."""
        return TILE * self.bytes * self.blocks(groups)

    def table(self) -> ctypes.Array[ctypes.c_int64]:
        """The fields for the kernels: how many there are, then the four numbers of each."""
        numbers = [len(self.fields), *(number for field in self.fields for number in field)]
        return (ctypes.c_int64 * len(numbers))(*numbers)
