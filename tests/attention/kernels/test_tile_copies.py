"""Copies between tensors and a thread's memory, against NumPy."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from clearhead.attention.kernels import tile_copies
from clearhead.attention.kernels.tile_product import LINE

generator = np.random.default_rng(3)


def draw(*shape: int) -> np.ndarray:
    return generator.normal(size=shape).astype(np.float32)


@numba.njit
def copy(
    to: int, step: int, rows: int, source: int, row_bytes: int, count: int, width: int
) -> None:
    tile_copies.copy_rows(to, step, rows, source, row_bytes, count, width)


@numba.njit
def gather(
    to: int, to_step: int, source: int, step: int, count: int, width: int, is_first: bool
) -> None:
    tile_copies.gather_rows(to, to_step, source, step, count, width, is_first)


@numba.njit
def dot(left: int, right: int, width: int) -> float:
    return tile_copies.dot(left, right, width)  # type: ignore[no-any-return]


@numba.njit
def transposed(to: int, source: int, step: int, factor: np.float32) -> None:
    tile_copies.transpose(to, source, step, factor)


@numba.njit
def row_bytes(width: int) -> int:
    return tile_copies.padded(width)  # type: ignore[no-any-return]


@pytest.mark.parametrize("width", [1, 15, 16, 37, 64])
def test_rows_are_filled_up_with_zeros(width: int) -> None:
    source, step = draw(5, 71), row_bytes(width)
    to = np.full((8, step // 4), 7, np.float32)
    copy(to.ctypes.data, step, 7, source.ctypes.data, source.strides[0], 5, width)
    assert step % (LINE * 4) == 0 and step // 4 - width < LINE
    assert (to[:5, :width] == source[:, :width]).all()
    assert not to[:5, width:].any() and not to[5:7].any()
    assert (to[7] == 7).all()


@pytest.mark.parametrize("width", [1, 16, 37])
@pytest.mark.parametrize("is_first", [True, False])
def test_rows_are_put_or_added(width: int, is_first: bool) -> None:
    source, to = draw(3, 41), draw(3, 43)
    expected = to.copy()
    expected[:, :width] = source[:, :width] + (0 if is_first else to[:, :width])
    steps = (to.ctypes.data, to.strides[0], source.ctypes.data, source.strides[0])
    gather(*steps, 3, width, is_first)
    assert (to == expected).all()


@pytest.mark.parametrize("width", [1, 16, 37, 64])
def test_the_product_of_two_rows(width: int) -> None:
    left, right = draw(width), draw(width)
    exact = left.astype(np.float64) @ right
    np.testing.assert_allclose(dot(left.ctypes.data, right.ctypes.data, width), exact, atol=1e-5)


def test_a_tile_is_transposed_and_scaled() -> None:
    source, to = draw(LINE, 2 * LINE), np.zeros((2 * LINE, LINE), np.float32)
    transposed(to.ctypes.data, source.ctypes.data, source.strides[0], np.float32(3))
    assert (to == 3 * source.T).all()
