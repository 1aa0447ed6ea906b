"""The product of a tile and quantised vectors, against the dequantised product."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
import torch

from clearhead.checkpoints.gguf.quantised import QuantisedTensor
from clearhead.engine.engine import engine_runs_here
from clearhead.engine.kernels.layouts import PIECES, Layout
from clearhead.engine.kernels.matrix import FLOATS, NUMBERS
from clearhead.engine.weights import pack_matrix
from tests.shared.engine_steps import call, dequantised_vector, quantised_vector
from tests.shared.gguf_blocks import random_blocks

pytestmark = pytest.mark.skipif(not engine_runs_here(), reason="no OpenMP or half precision here")

TOKENS = 7


def test_every_layout_has_a_product() -> None:
    assert set(PIECES) == {*NUMBERS, *FLOATS}


@pytest.mark.parametrize("kind", PIECES)
def test_multiply_tile(kind: str) -> None:
    columns = 3 * max(Layout.of(kind).length, 32)
    weight = QuantisedTensor(random_blocks(kind, 32, columns, seed=3), kind)
    packed, exact = pack_matrix(weight), weight.floats().double()
    structure, groups = packed.structure(), columns // 32
    values = np.random.default_rng(5).normal(size=(TOKENS, columns))
    values[:, 40:48] *= 20  # groups of very different sums
    vectors = np.stack([quantised_vector(row) for row in values])
    for tile in range(2):
        result = np.zeros((TOKENS, 16), np.float32)
        arguments = (tile, vectors.ctypes.data, vectors.strides[0], TOKENS, result.ctypes.data)
        call("multiply_tile", ctypes.addressof(structure), *arguments)
        inputs = torch.stack([dequantised_vector(row, groups) for row in vectors])
        if kind in FLOATS:
            inputs = torch.from_numpy(values.astype(np.float32)).double()
        rows = exact[16 * tile : 16 * tile + 16]
        off = (torch.from_numpy(result).double() - inputs @ rows.T).abs()
        assert bool((off <= 1e-6 * (inputs.abs() @ rows.abs().T)).all())
        for token in range(TOKENS):  # the same bits one by one
            alone = np.zeros(16, np.float32)
            call(
                "multiply_tile", ctypes.addressof(structure), tile, vectors[token].ctypes.data,
                vectors.strides[0], 1, alone.ctypes.data,
            )  # fmt: skip
            assert alone.tolist() == result[token].tolist()
