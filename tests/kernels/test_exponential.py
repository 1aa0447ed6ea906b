"""eˣ of vectors against float64."""

from __future__ import annotations

import numpy as np

from clearhead.kernels.exponential import exp, exp_nonpositive
from tests.shared.compiled import LANES, on_floats


def test_exp_of_any_number() -> None:
    function = on_floats(exp, 1)
    for numbers in np.linspace(-86.9, 88, 61 * LANES).astype(np.float32).reshape(61, LANES):
        exact = np.exp(numbers.astype(np.float64))
        np.testing.assert_allclose(function(numbers), exact, rtol=3e-7)


def test_exp_is_bounded() -> None:
    given = np.zeros(LANES, np.float32)
    given[:3] = (-87.5, 1000, -np.inf)
    found = on_floats(exp, 1)(given)
    assert found[0] == found[2] == 0
    assert found[1] == on_floats(exp, 1)(np.full(LANES, 88, np.float32))[0]
    assert found[3] == 1


def test_exp_of_numbers_up_to_zero() -> None:
    function = on_floats(exp_nonpositive, 1)
    for numbers in np.linspace(-87, 0, 61 * LANES).astype(np.float32).reshape(61, LANES):
        exact = np.exp(numbers.astype(np.float64))
        # float32 has x·log₂e to 2⁻²⁴ of its size, which is an absolute error of the exponent
        np.testing.assert_allclose(function(numbers), exact, rtol=6e-6)
    near = np.linspace(-2, 0, LANES).astype(np.float32)
    np.testing.assert_allclose(function(near), np.exp(near.astype(np.float64)), rtol=3e-7)


def test_it_is_0_below_and_nan_stays() -> None:
    given = np.array([-88.0, -np.inf, np.nan, 0.0] * 4, np.float32)
    found = on_floats(exp_nonpositive, 1)(given)
    assert found[:2].tolist() == [0, 0]
    assert np.isnan(found[2])
    assert found[3] == 1
