"""Where the bits of a block of 256 go: numbers and scales, found again as the file means them."""

from __future__ import annotations

import numpy as np
import pytest
from gguf import GGMLQuantizationType
from gguf.quants import dequantize

from clearhead.checkpoints.gguf.kinds import kind_named
from clearhead.engine.kernels.bit_moves import PLACES, moves, six_bit_place
from tests.shared.gguf_blocks import SCALES

BITS = {"Q2_K": 2, "Q3_K": 3, "Q4_K": 4, "Q5_K": 5, "Q6_K": 6}


@pytest.mark.parametrize("kind", BITS)
def test_a_number_by_its_bits_in_the_tile(kind: str) -> None:
    """One number is set in the tile; the ``gguf`` package finds it in the block."""
    bits, moved = BITS[kind], moves(kind)
    scale_words = len(moved) // 32 - 8 * bits
    half = np.float16(1).view(np.uint16)
    for part, j, byte in ((0, 0, 0), (2, 3, 1), (3, 5, 2), (5, 6, 3), (7, 7, 1)):
        found = []
        for value in (0, 1, 2**bits - 1):
            block = np.zeros(kind_named(kind).block_bytes, np.uint8)
            block[SCALES[kind][0] : SCALES[kind][0] + 2].view(np.uint16)[0] = half
            ones = [(word, bit) for word, bit in moved if word < scale_words and bit % 6 == 0]
            for b in range(bits):
                word, place = PLACES[bits](j, b)
                if value >> b & 1:
                    ones.append((scale_words + bits * part + word, 8 * byte + place))
            for start, bit in (moved[one] for one in ones):
                block[start + bit // 8] |= 1 << bit % 8
            found.append(dequantize(block[None], GGMLQuantizationType[kind])[0])
        for one, value in zip(found[1:], (1, 2**bits - 1), strict=True):
            (column,) = np.flatnonzero(one - found[0])
            assert column == 32 * part + 4 * j + byte
            step = found[1][column] - found[0][column]
            assert one[column] - found[0][column] == pytest.approx(value * step)


def test_sixteen_numbers_of_six_bits_fill_three_words() -> None:
    places = {six_bit_place(index, b) for index in range(16) for b in range(6)}
    assert places == {(word, bit) for word in range(3) for bit in range(32)}
