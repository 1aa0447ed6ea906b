"""Products of whole numbers come out the same, bit for bit, on every kind of machine."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from clearhead.engine.engine import engine_runs_here

pytestmark = pytest.mark.skipif(not engine_runs_here(), reason="no OpenMP or half precision here")


def totals(byte_width: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Σ w·x of one group by the products of one kind of machine, and as NumPy has it."""
    import numba
    from numba import types

    from clearhead.engine.kernels.products import Products
    from clearhead.kernels.memory import broadcast_int_at, load_ints, store_ints
    from clearhead.kernels.vectors import no_ints

    products = Products(byte_width)
    first, second = products.dot_first, products.dot_second
    joined, store_split = products.joined, products.store_split

    def group(weights: int, numbers: int, split: int, result: int) -> None:
        store_split(split, load_ints(numbers))
        store_split(split + 32, load_ints(numbers + 64))
        a, b = no_ints(), no_ints()
        for quad in range(8):
            w = load_ints(weights + 64 * quad)
            a = first(a, w, broadcast_int_at(split + 8 * quad))
            b = second(b, w, broadcast_int_at(split + 8 * quad + 4))
        store_ints(result, joined(a, b))

    compiled = numba.cfunc(types.void(*[types.int64] * 4))(group)
    generator = np.random.default_rng(7)
    weights = generator.integers(0, 256, (8, 16, 4)).astype(np.uint8)
    numbers = generator.integers(-32512, 32513, 32).astype(np.int32)
    numbers[:4] = 32512, -32512, 127, -128
    split, result = np.zeros(64, np.uint8), np.zeros(16, np.int32)
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 4)(compiled.address)
    call(*(array.ctypes.data for array in (weights, numbers, split, result)))
    rows = weights.transpose(1, 0, 2).reshape(16, 32).astype(np.int64)
    return result, rows @ numbers


def widths() -> list[int | None]:
    from clearhead.kernels.operations import features

    able = features()
    vnni = [512, 256] if {"avx512vnni", "avx512vl"} <= able else []
    return [None, *vnni]


@pytest.mark.parametrize("byte_width", [None, 256, 512])
def test_products_are_exact(byte_width: int | None) -> None:
    if byte_width not in widths():
        pytest.skip("no VNNI here")
    found, wanted = totals(byte_width)
    assert found.tolist() == wanted.tolist()
