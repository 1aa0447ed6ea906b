"""The product of a tile and quantised vectors, against the dequantised product."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
import torch

from clearhead.checkpoints.gguf.quantised import QuantisedTensor
from clearhead.engine.engine import engine_runs_here
from clearhead.engine.kernels.layouts import PIECES, Layout
from clearhead.engine.kernels.matrix import FLOATS, NUMBERS
from clearhead.engine.kernels.structures import TILE_RESULTS_BYTES
from clearhead.engine.weights import pack_matrix
from tests.shared.engine_steps import call, dequantised_vectors, quantised_vectors
from tests.shared.gguf_blocks import random_blocks

pytestmark = pytest.mark.skipif(not engine_runs_here(), reason="no OpenMP or half precision here")

TOKENS = 7


def test_every_layout_has_a_product() -> None:
    assert set(PIECES) == {*NUMBERS, *FLOATS}


@pytest.mark.parametrize("kind", PIECES)
def test_multiply_tiles(kind: str) -> None:
    columns = 3 * max(Layout.of(kind).length, 32)
    weight = QuantisedTensor(random_blocks(kind, 48, columns, seed=3), kind)
    packed, exact = pack_matrix(weight), weight.floats().double()
    structure, groups = packed.structure(), columns // 32
    values = np.random.default_rng(5).normal(size=(TOKENS, columns))
    values[:, 40:48] *= 20  # groups of very different sums
    vectors = quantised_vectors(values)
    inputs = dequantised_vectors(vectors, groups, TOKENS)
    if kind in FLOATS:
        inputs = torch.from_numpy(values.astype(np.float32)).double()

    def product(tile: int, tiles: int, vectors: Any, tokens: int) -> Any:
        result = np.zeros((tiles, TILE_RESULTS_BYTES // 64, 16), np.float32)
        numbers = (tile, tiles, vectors.ctypes.data, tokens, result.ctypes.data)
        call("multiply_tiles", ctypes.addressof(structure), *numbers)
        return result[:, :tokens]

    single = [product(tile, 1, vectors, TOKENS)[0] for tile in range(3)]
    for tile in range(3):
        rows = exact[16 * tile : 16 * tile + 16]
        off = (torch.from_numpy(single[tile]).double() - inputs @ rows.T).abs()
        assert bool((off <= 1e-6 * (inputs.abs() @ rows.abs().T)).all())
    for tile in range(2):  # two together
        both = product(tile, 2, vectors, TOKENS)
        assert both.tolist() == [single[tile].tolist(), single[tile + 1].tolist()]
    for token in range(TOKENS):  # the same bits one by one
        alone = product(1, 2, quantised_vectors(values[token : token + 1]), 1)[:, 0]
        assert alone.tolist() == [single[1][token].tolist(), single[2][token].tolist()]
