"""Tiles: how the blocks of 16 rows of a matrix lie in memory. One layout for each kind.

A tile holds 16 rows. The blocks of its rows that lie above one another are stored together, cut
into pieces of two or four bytes: the first piece of each of the 16 rows, then the second … So one
load brings the same piece of all rows, one row in each lane, and no sum across lanes is needed. A
tile is as large as its rows in the file, and nothing is lost: taken apart again, it is the file's
blocks.

Pieces lie in the order in which a product needs them: the processor fetches memory ahead of a loop
only if it goes on in one direction. Some are changed while they are moved, so that the products
need not do it: bytes with a sign are stored plus 128 (Q8_0), 32 single bits are reordered so that
those of columns 4j … 4j + 3 are bit j of four bytes (Q5_0, Q5_1), and the words of a block of 256
are put together anew, bit by bit (see bit_moves.py).
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator
from typing import NamedTuple

from clearhead.checkpoints.gguf.kinds import kind_named
from clearhead.engine.kernels.bit_moves import moves
from clearhead.engine.kernels.structures import GROUP, TILE

AS_IT_IS, PLUS_128, SPREAD_BITS, TOGETHER = range(4)
ALL_BITS = 0xFFFFFFFF


class Term(NamedTuple):
    """The word at byte ``source`` of a block, moved down by ``shift`` bits (up if that is below 0);
    only the bits of ``mask`` count."""

    source: int
    shift: int
    mask: int


class Piece(NamedTuple):
    """Two or four bytes of a tile's row: its terms together, and how they are changed."""

    size: int
    change: int
    terms: tuple[Term, ...]


def _run(start: int, size: int, count: int, change: int = AS_IT_IS) -> list[Piece]:
    """Pieces that follow one another in a block, from byte ``start`` on."""
    starts = range(start, start + size * count, size)
    return [Piece(size, change, (Term(place, 0, ALL_BITS),)) for place in starts]


def _words(kind: str) -> Iterator[Piece]:
    """The words of a block of 256: bits that move alike are one term."""
    terms: dict[int, dict[tuple[int, int], int]] = {}
    for (word, bit), (source, stored) in moves(kind).items():
        alike = terms.setdefault(word, {})
        key = (source, stored - bit)
        alike[key] = alike.get(key, 0) | 1 << bit
    for _, alike in sorted(terms.items()):
        yield Piece(4, TOGETHER, tuple(Term(*key, mask) for key, mask in alike.items()))


PIECES = {
    "F32": [*_run(0, 4, GROUP)],
    "F16": [*_run(0, 2, GROUP)],
    "BF16": [*_run(0, 2, GROUP)],
    "Q4_0": [*_run(0, 2, 1), *_run(2, 4, 4)],
    "Q4_1": [*_run(0, 2, 2), *_run(4, 4, 4)],
    "Q5_0": [*_run(0, 2, 1), *_run(2, 4, 1, SPREAD_BITS), *_run(6, 4, 4)],
    "Q5_1": [*_run(0, 2, 2), *_run(4, 4, 1, SPREAD_BITS), *_run(8, 4, 4)],
    "Q8_0": [*_run(0, 2, 1), *_run(2, 4, 8, PLUS_128)],
    "Q2_K": [*_run(80, 2, 2), *_words("Q2_K")],
    "Q3_K": [*_run(108, 2, 1), *_words("Q3_K")],
    "Q4_K": [*_run(0, 2, 2), *_words("Q4_K")],
    "Q5_K": [*_run(0, 2, 2), *_words("Q5_K")],
    "Q6_K": [*_run(208, 2, 1), *_words("Q6_K")],
}
"""The kinds that the engine has products for. Single numbers count as blocks of 32."""


class Layout(NamedTuple):
    """A kind as the kernels see it: numbers and bytes of a block, and its pieces."""

    kind: str
    length: int
    bytes: int
    pieces: tuple[Piece, ...]

    @classmethod
    @functools.cache
    def of(cls, kind: str) -> Layout:
        """The layout of a kind in PIECES."""
        stored = kind_named(kind)
        times = GROUP if stored.block_length == 1 else 1
        pieces = tuple(PIECES[kind])
        return cls(kind, stored.block_length * times, stored.block_bytes * times, pieces)

    def blocks(self, groups: int) -> int:
        """The number of blocks in a row of so many groups of 32."""
        return groups * GROUP // self.length

    def tile_bytes(self, groups: int) -> int:
        """The number of bytes of a tile."""
        return TILE * self.bytes * self.blocks(groups)

    def table(self) -> ctypes.Array[ctypes.c_int64]:
        """The pieces for the kernels: how many there are, then of each its size, change and number
        of terms, and the three numbers of each term."""
        numbers = [len(self.pieces)]
        for piece in self.pieces:
            numbers += [piece.size, piece.change, len(piece.terms)]
            numbers += [number for term in piece.terms for number in term]
        return (ctypes.c_int64 * len(numbers))(*numbers)
