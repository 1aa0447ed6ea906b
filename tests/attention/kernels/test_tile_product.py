"""Products of small matrices in registers, against NumPy."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from clearhead.attention.kernels.tile_product import (
    FLOAT_BYTES,
    LINE,
    ROWS,
    add_tile,
    put_tile,
    put_transposed,
)
from clearhead.kernels.memory import load_floats

generator = np.random.default_rng(5)


def draw(*shape: int) -> np.ndarray:
    return generator.normal(size=shape).astype(np.float32)


@numba.njit
def put(tile: int, left: int, row: int, term: int, terms: int, right: int) -> None:
    put_tile(tile, left, row, term, terms, right)


@numba.njit
def added(tile: int, kept: int, left: int, row: int, term: int, terms: int, right: int) -> None:
    add_tile(tile, kept, left, row, term, terms, right)


@numba.njit
def transpose(to: int, to_step: int, source: int, source_step: int, factors: int) -> None:
    put_transposed(to, to_step, source, source_step, load_floats(factors))


@pytest.mark.parametrize("terms", [1, 3, 4, 7, 13])
def test_a_tile_is_a_product(terms: int) -> None:
    left, right, tile = draw(ROWS, terms), draw(terms, LINE), draw(ROWS, LINE)
    row, term = (step for step in left.strides)
    put(tile.ctypes.data, left.ctypes.data, row, term, terms, right.ctypes.data)
    np.testing.assert_allclose(tile, left.astype(np.float64) @ right, atol=3e-6)


@pytest.mark.parametrize("terms", [2, 5, 9])
def test_what_was_there_is_scaled_and_added_to(terms: int) -> None:
    left, right, tile, kept = draw(terms, ROWS), draw(terms, LINE), draw(ROWS, LINE), draw(LINE)
    expected = kept.astype(np.float64) * tile + left.T.astype(np.float64) @ right
    term, row = (step for step in left.strides)  # the other way round
    addresses = (array.ctypes.data for array in (tile, kept, left))
    added(*addresses, row, term, terms, right.ctypes.data)
    np.testing.assert_allclose(tile, expected, atol=3e-6)


def test_a_square_is_transposed_and_scaled() -> None:
    source, factors, to = draw(16, 23), draw(16), np.zeros((16, 19), np.float32)
    transpose(
        to.ctypes.data, 19 * FLOAT_BYTES, source.ctypes.data, 23 * FLOAT_BYTES, factors.ctypes.data
    )
    assert to[:, :16].tolist() == (source[:, :16] * factors).T.tolist()
    assert not to[:, 16:].any()
