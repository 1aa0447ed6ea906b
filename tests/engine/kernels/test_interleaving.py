"""Blocks into tiles: where each byte goes, and which are changed on the way."""

from __future__ import annotations

import pytest
import torch

from clearhead.checkpoints.gguf.quantised import QuantisedTensor
from clearhead.engine.engine import engine_runs_here
from clearhead.engine.weights import pack_matrix

pytestmark = pytest.mark.skipif(not engine_runs_here(), reason="no OpenMP or half precision here")


def packed(kind: str, rows: torch.Tensor) -> torch.Tensor:
    """The first tile of a matrix, as bytes."""
    return pack_matrix(QuantisedTensor(rows, kind)).tiles[0]


def test_pieces_of_16_rows_lie_side_by_side() -> None:
    rows = torch.arange(16)[:, None] * 10 + torch.arange(18)
    tile = packed("Q4_0", rows.to(torch.uint8))
    assert tile[:6].tolist() == [0, 1, 10, 11, 20, 21]  # scales: two bytes of each row
    assert tile[32:44].tolist() == [2, 3, 4, 5, 12, 13, 14, 15, 22, 23, 24, 25]
    assert tile[96:100].tolist() == [6, 7, 8, 9]  # the second piece of the first row


def test_a_block_of_256_is_put_together_anew() -> None:
    rows = torch.zeros(16, 210, dtype=torch.uint8)
    rows[3, 208:] = torch.tensor([7, 9])  # the scale of all
    rows[3, 192] = 5  # the first of 16 scales
    rows[3, 13] = 0x0B  # column 13 of part 0, its lower four bits; 13 = 4·3 + 1
    rows[3, 128 + 13] = 0b10  # the upper two
    tile = packed("Q6_K", rows)
    assert tile[6:8].tolist() == [7, 9] and int(tile[32 + 12]) == 5
    words = tile[16 * 18 :].view(-1, 16, 4)[:, 3]  # of the numbers of row 3
    # number 3 has the upper two bits of three words: 0x2B = 10 10 11
    assert words[:3, 1].tolist() == [0b11 << 6, 0b10 << 6, 0b10 << 6]
    assert words.count_nonzero() == 3


def test_bytes_with_a_sign_are_stored_plus_128() -> None:
    rows = torch.zeros(16, 34, dtype=torch.uint8)
    rows[1, 2:6] = torch.tensor([0, 1, 127, 255], dtype=torch.uint8)
    tile = packed("Q8_0", rows)
    assert tile[32:40].tolist() == [128] * 4 + [128, 129, 255, 127]


def test_single_bits_are_spread() -> None:
    rows = torch.zeros(16, 22, dtype=torch.uint8)
    rows[0, 2], rows[1, 3] = 0b10, 0b10000  # columns 1 and 12
    tile = packed("Q5_0", rows)[32:].view(-1, 4)
    assert tile[0].tolist() == [0, 1, 0, 0]  # byte 1, bit 0: column 4·0 + 1
    assert tile[1].tolist() == [8, 0, 0, 0]  # byte 0, bit 3: column 4·3 + 0


def test_rows_that_are_not_there_are_zero() -> None:
    matrix = pack_matrix(
        QuantisedTensor(torch.full((2, 34), 60, dtype=torch.uint8), "Q8_0"),
        order=torch.tensor([1, -1, 0]),
    )
    assert matrix.dequantised()[:3, 0].ne(0).tolist() == [True, False, True]
