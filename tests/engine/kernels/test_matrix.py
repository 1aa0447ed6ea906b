"""The product of a tile and quantised vectors, against the dequantised product."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
import torch

from clearhead.engine.engine import engine_runs_here
from clearhead.engine.weights import PackedMatrix, pack_matrix
from tests.shared.engine_steps import call, dequantised_vector, quantised_vector

pytestmark = pytest.mark.skipif(not engine_runs_here(), reason="no OpenMP or half precision here")

GROUPS, TOKENS = 3, 7  # four tokens at once, and three one by one


def matrix(bits: int) -> PackedMatrix:
    generator = torch.Generator().manual_seed(bits)
    if bits == 8:
        return pack_matrix(torch.randn(32, 32 * GROUPS, generator=generator))
    levels = torch.randint(0, 16, (32, GROUPS, 32), generator=generator).float()
    levels[..., 5], levels[..., 11] = 0, 15
    return pack_matrix((levels / 32 - 0.25).flatten(1))


@pytest.mark.parametrize("bits", [4, 8])
def test_multiply_tile(bits: int) -> None:
    packed = matrix(bits)
    assert packed.bits == bits
    structure = packed.structure()
    values = np.random.default_rng(5).normal(size=(TOKENS, 32 * GROUPS))
    vectors = np.stack([quantised_vector(row) for row in values])
    for tile in range(2):
        result = np.zeros((TOKENS, 16), np.float32)
        arguments = (tile, vectors.ctypes.data, vectors.strides[0], TOKENS, result.ctypes.data)
        call("multiply_tile", ctypes.addressof(structure), *arguments)
        inputs = torch.stack([dequantised_vector(row, GROUPS) for row in vectors])
        wanted = inputs @ packed.dequantised()[16 * tile : 16 * tile + 16].double().T
        torch.testing.assert_close(torch.from_numpy(result).double(), wanted, rtol=0, atol=2e-5)
        for token in range(TOKENS):  # the same bits one by one
            alone = np.zeros(16, np.float32)
            call(
                "multiply_tile", ctypes.addressof(structure), tile, vectors[token].ctypes.data,
                vectors.strides[0], 1, alone.ctypes.data,
            )  # fmt: skip
            assert alone.tolist() == result[token].tolist()
