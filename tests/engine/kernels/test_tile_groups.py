"""The numbers and scales of one group of a tile, against those of the blocks themselves."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
import torch

from clearhead.checkpoints.gguf.quantised import QuantisedTensor
from clearhead.engine.engine import engine_runs_here
from clearhead.engine.kernels.layouts import Layout
from clearhead.engine.kernels.matrix import COMMON, NUMBERS
from clearhead.engine.kernels.tile_groups import nothing_common
from clearhead.engine.weights import pack_matrix
from clearhead.kernels.memory import store_floats, store_ints
from tests.shared.gguf_blocks import random_blocks

pytestmark = pytest.mark.skipif(not engine_runs_here(), reason="no OpenMP or half precision here")

OFFSETS = {"Q4_0": 8, "Q5_0": 16, "Q8_0": 128, "Q3_K": 4, "Q6_K": 32}


def group_of(kind: str, tile: torch.Tensor, group: int) -> tuple[Any, Any]:
    """The whole numbers (row, column) and the scales and minima (which, row) of one group."""
    numbers_of, scales_of, _ = NUMBERS[kind]
    common_of = COMMON.get(kind, nothing_common)

    @numba.njit
    def take(block: int, part: int, numbers: int, scales: int) -> None:
        found = numbers_of(block, part)
        for i in range(8):
            store_ints(numbers + 64 * i, found[i])
        factors = scales_of(block, part, common_of(block))
        for i in range(len(factors)):
            store_floats(scales + 64 * i, factors[i])

    numbers, scales = np.zeros((8, 16, 4), np.uint8), np.zeros((4, 16), np.float32)
    parts = Layout.of(kind).length // 32
    block = tile.data_ptr() + 16 * Layout.of(kind).bytes * (group // parts)
    take(block, group % parts, numbers.ctypes.data, scales.ctypes.data)
    return numbers.transpose(1, 0, 2).reshape(16, 32).astype(np.float64), scales.astype(np.float64)


@pytest.mark.parametrize("kind", ["Q4_0", "Q5_1", "Q8_0", *COMMON])
def test_group(kind: str) -> None:
    columns = max(Layout.of(kind).length, 32)
    weight = QuantisedTensor(random_blocks(kind, 16, columns, seed=9), kind)
    exact, tile = weight.floats().double().numpy(), pack_matrix(weight).tiles[0]
    for group in {0, 3, 6, 7} & set(range(columns // 32)):
        numbers, scales = group_of(kind, tile, group)
        numbers -= OFFSETS.get(kind, 0)
        halves = np.repeat(scales[:2].T, 16, axis=1)  # of columns 0 … 15 and 16 … 31
        if kind in ("Q3_K", "Q6_K"):
            found = numbers * halves
        elif kind == "Q2_K":  # what −128·Σ is multiplied with is a minimum / 128
            found = numbers * halves - 128 * np.repeat(scales[2:].T, 16, axis=1)
        else:
            found = numbers * scales[0][:, None] + scales[1][:, None]
        np.testing.assert_allclose(found, exact[:, 32 * group :][:, :32], rtol=1e-6, atol=1e-6)
