"""Layouts of tiles: every bit of a block has one place in a tile, which has no bit more."""

from __future__ import annotations

import pytest

from clearhead.checkpoints.gguf.kinds import KINDS
from clearhead.engine.kernels.layouts import ALL_BITS, AS_IT_IS, PIECES, SPREAD_BITS, Layout


@pytest.mark.parametrize("kind", PIECES)
def test_every_bit_of_a_block_has_one_place(kind: str) -> None:
    layout = Layout.of(kind)
    stored: list[int] = []
    for piece in layout.pieces:
        assert piece.size in (2, 4)
        filled: list[int] = []
        for term in piece.terms:
            bits = [bit for bit in range(8 * piece.size) if term.mask >> bit & 1]
            filled += bits
            stored += [8 * term.source + bit + term.shift for bit in bits]
            assert all(0 <= bit + term.shift < 8 * piece.size for bit in bits)
        assert sorted(filled) == list(range(8 * piece.size))
    assert sorted(stored) == list(range(8 * layout.bytes))
    given = next(each for each in KINDS.values() if each.name == kind)
    assert layout.bytes * given.block_length == given.block_bytes * layout.length


def test_sizes_of_a_tile() -> None:
    layout = Layout.of("Q4_K")
    assert layout.blocks(16) == 2
    assert layout.tile_bytes(16) == 16 * 2 * 144
    assert Layout.of("F16").tile_bytes(3) == 16 * 3 * 32 * 2
    table = list(Layout.of("Q5_0").table())
    assert table[:13] == [6, 2, AS_IT_IS, 1, 0, 0, ALL_BITS, 4, SPREAD_BITS, 1, 2, 0, ALL_BITS]
    assert table[13:19] == [4, AS_IT_IS, 1, 6, 0, ALL_BITS] and len(table) == 1 + 6 * 6
