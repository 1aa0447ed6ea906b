"""Quantised weights: lossless where they came from 4 bits, close everywhere else."""

from __future__ import annotations

import pytest
import torch

from clearhead.engine.engine import engine_runs_here
from clearhead.engine.weights import heads_padded, pack_interleaved, pack_matrix, padded

pytestmark = pytest.mark.skipif(not engine_runs_here(), reason="no OpenMP or half precision here")


def four_bit_weights(rows: int, groups: int) -> torch.Tensor:
    """Weights as a Q4_1 file gives them: 16 levels of half-precision scale and minimum."""
    torch.manual_seed(3)
    levels = torch.randint(0, 16, (rows, groups, 32)).float()
    levels[..., 7], levels[..., 19] = 0, 15
    scale = torch.rand(rows, groups, 1).half().float() / 16
    minimum = -(torch.rand(rows, groups, 1) / 2).half().float()
    return (levels * scale.half().float() + minimum).flatten(1)


def test_weights_of_16_levels_stay_as_they_are() -> None:
    weight = four_bit_weights(64, 3)
    packed = pack_matrix(weight)
    assert packed.bits == 4
    torch.testing.assert_close(packed.dequantised(), weight, rtol=0, atol=1e-6)
    assert packed.bytes == 64 * 3 * 20  # 32 weights in 16 bytes, and 4 of scale and minimum


def test_a_single_other_number_makes_it_eight_bits() -> None:
    weight = four_bit_weights(64, 3)
    weight[63, 95] += 0.01
    packed = pack_matrix(weight)
    assert packed.bits == 8
    assert packed.bytes == 64 * 3 * 34
    largest = weight.view(64, 3, 32).abs().amax(-1, keepdim=True)
    off = (packed.dequantised() - weight).view(64, 3, 32).abs()
    assert bool((off <= largest / 127 * 0.56).all())  # half a step, and the scale's rounding


def test_rows_and_columns_are_padded_with_zeros() -> None:
    torch.manual_seed(4)
    weight, bias = torch.randn(37, 41), torch.randn(37)
    packed = pack_matrix(weight, bias)
    assert packed.dequantised().shape == (64, 64)
    assert packed.dequantised()[37:].abs().sum() == packed.dequantised()[:, 41:].abs().sum() == 0
    assert packed.bias is not None
    assert torch.equal(packed.bias[:37], bias)


def test_matrices_in_turns() -> None:
    torch.manual_seed(4)
    first, second = torch.randn(2, 32, 32)
    both = pack_interleaved([first, second], [None, torch.ones(32)])
    apart = both.dequantised().view(2, 2, 16, 32)
    assert torch.equal(apart[:, 0].flatten(0, 1), pack_matrix(first).dequantised())
    assert torch.equal(apart[:, 1].flatten(0, 1), pack_matrix(second).dequantised())
    assert both.bias is not None
    assert both.bias.view(2, 2, 16).sum(dim=(0, 2)).tolist() == [0, 32]


def test_zeros_and_one_number_for_all() -> None:
    assert pack_matrix(torch.zeros(32, 32)).dequantised().abs().sum() == 0
    assert torch.equal(
        pack_matrix(torch.full((32, 32), 0.5)).dequantised(), torch.full((32, 32), 0.5)
    )


def test_heads_are_padded_one_by_one() -> None:
    rows = torch.arange(6.0)[:, None].expand(6, 2)
    assert heads_padded(rows, 2, 5)[:, 0].tolist() == [0, 1, 2, 0, 0, 3, 4, 5, 0, 0]
    assert heads_padded(rows.T, 2, 5, axis=1)[1].tolist() == [0, 1, 2, 0, 0, 3, 4, 5, 0, 0]
    assert padded(torch.ones(2, 2), 2, 3).tolist() == [[1, 1, 0], [1, 1, 0]]
