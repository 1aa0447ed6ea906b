"""Each operation on vectors against NumPy's."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest

from clearhead.kernels import vectors
from clearhead.kernels.memory import load_floats, load_ints, put_float, put_int, store_ints
from tests.shared.compiled import LANES, on_floats

generator = np.random.default_rng(7)
LEFT, RIGHT, THIRD = generator.normal(size=(3, LANES)).astype(np.float32) * 3


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("add", LEFT + RIGHT),
        ("subtract", LEFT - RIGHT),
        ("multiply", LEFT * RIGHT),
        ("divide", LEFT / RIGHT),
        ("larger", np.maximum(LEFT, RIGHT)),
        ("smaller", np.minimum(LEFT, RIGHT)),
        ("with_sign_of", np.copysign(LEFT, RIGHT)),
    ],
)
def test_operations_of_two_vectors(name: str, expected: np.ndarray) -> None:
    assert on_floats(getattr(vectors, name), 2)(LEFT, RIGHT).tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("name", "expected"), [("absolute", np.abs(LEFT)), ("rounded", np.rint(LEFT))]
)
def test_operations_of_one_vector(name: str, expected: np.ndarray) -> None:
    assert on_floats(getattr(vectors, name), 1)(LEFT).tolist() == expected.tolist()


def test_multiply_add_is_rounded_once() -> None:
    exact = LEFT.astype(np.float64) * RIGHT + THIRD
    found = on_floats(vectors.multiply_add, 3)(LEFT, RIGHT, THIRD)
    assert found.tolist() == exact.astype(np.float32).tolist()


def test_a_comparison_with_nan_takes_the_right_one() -> None:
    nan = np.full(LANES, np.nan, np.float32)
    assert on_floats(vectors.larger, 2)(nan, RIGHT).tolist() == RIGHT.tolist()
    assert np.isnan(on_floats(vectors.smaller, 2)(LEFT, nan)).all()


def test_reductions() -> None:
    @numba.njit
    def reduce(result: int, floats: int, ints: int) -> None:
        put_float(result, vectors.sum_of(load_floats(floats)))
        put_float(result + 4, vectors.largest_of(load_floats(floats)))
        put_int(result + 8, vectors.int_sum_of(load_ints(ints)))

    result, whole = np.zeros(3, np.float32), np.arange(LANES, dtype=np.int32) - 3
    reduce(result.ctypes.data, LEFT.ctypes.data, whole.ctypes.data)
    assert result[0] == pytest.approx(math.fsum(LEFT.tolist()), abs=1e-5)
    assert result[1] == LEFT.max()
    assert result.view(np.int32)[2] == whole.sum()


def test_broadcast_and_between() -> None:
    @numba.njit
    def third(vector):  # type: ignore[no-untyped-def]
        return vectors.between(vectors.broadcast(np.float32(2.5)), 3, 11)

    found = on_floats(third, 1)(LEFT)
    inside = (np.arange(LANES) >= 3) & (np.arange(LANES) < 11)
    assert found.tolist() == np.where(inside, 2.5, -np.inf).tolist()


def test_powers_of_two_and_their_rounding() -> None:
    exponents = np.linspace(-126, 127, LANES).astype(np.float32)

    @numba.njit
    def power(vector):  # type: ignore[no-untyped-def]
        return vectors.rounded_power(vector)[1]

    @numba.njit
    def by_shift(vector):  # type: ignore[no-untyped-def]
        return vectors.power_of_two(vectors.as_ints(vectors.rounded(vector)))

    expected = np.ldexp(np.float32(1), np.rint(exponents).astype(np.int32)).tolist()  # exact
    assert on_floats(power, 1)(exponents).tolist() == expected
    assert on_floats(by_shift, 1)(exponents).tolist() == expected


def test_bits() -> None:
    given = generator.integers(-(2**31), 2**31, LANES).astype(np.int32)
    bits = given.view(np.uint32)

    @numba.njit
    def every(result: int, first: int) -> None:
        vector = load_ints(first)
        store_ints(result, vectors.masked(vector, 0x0F0F0F0F))
        store_ints(result + 64, vectors.shifted_right(vector, 4))
        store_ints(result + 128, vectors.shifted_left(vector, 3))
        store_ints(result + 192, vectors.divided_by_power(vector, 5))
        store_ints(result + 256, vectors.shifted_right_by(vector, vectors.lane_numbers()))
        store_ints(result + 320, vectors.either(vector, vectors.broadcast_int(0x123456789)))

    found = np.zeros((6, LANES), np.int32)
    every(found.ctypes.data, given.ctypes.data)
    wanted = (
        bits & 0x0F0F0F0F, bits >> 4, bits << 3, given >> 5, bits >> np.arange(LANES),
        bits | 0x23456789,
    )  # fmt: skip
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.tolist() == theirs.astype(np.uint32).view(np.int32).tolist()
