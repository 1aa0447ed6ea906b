"""eˣ of vectors, for what numba compiles.

There are two, each the quicker one for its user. Softmax needs eˣ for x ≤ 0 only, so that
:func:`exp_nonpositive` can round by adding a constant and build 2ⁿ by one shift. Activations need
:func:`exp` of any x. A third one, for single numbers, stands in ``attention/kernels/decode.py``.
"""
# numba's decorators have no types, and what its vectors are is known to LLVM alone.
# mypy: disable-error-code="untyped-decorator, no-any-return"

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from clearhead.kernels.compiling import INLINED
from clearhead.kernels.vectors import (
    as_ints,
    broadcast,
    larger,
    multiply,
    multiply_add,
    no_floats,
    power_of_two,
    rounded,
    rounded_power,
    smaller,
    subtract,
    where_below,
)

# All numbers are float32, because a Python float would drag the computation to float64.
ZERO, ONE = np.float32(0), np.float32(1)
LOG2_E = np.float32(1 / math.log(2))
SMALLEST_POWER = np.float32(-126)  # of 2: below it, float32 loses digits
LARGEST_EXPONENT, SMALLEST_EXPONENT = np.float32(88), np.float32(-87)  # of e
LN2_HIGH = np.float32(355 / 512)  # so few bits that n·LN2_HIGH is exact
LN2_LOW = np.float32(math.log(2) - 355 / 512)
F2, F3, F4, F5, F6 = (np.float32(1 / math.factorial(n)) for n in range(2, 7))
# 2^r − 1 = r·(c₁ + c₂·r + …) for |r| ≤ ½: least squares at 400 Chebyshev points, error 2e-9.
_POINTS = np.cos(np.pi * (np.arange(400) + 0.5) / 400) / 2
_SERIES = np.polynomial.Polynomial.fit(
    _POINTS, np.expm1(_POINTS * math.log(2)) / _POINTS, 5, domain=[-0.5, 0.5], window=[-0.5, 0.5]
).coef
C1, C2, C3, C4, C5, C6 = (np.float32(value) for value in _SERIES)


@njit(**INLINED)
def power_parts(x: Any) -> tuple[Any, Any]:
    """2ⁿ and 2ʳ − 1 with 2ˣ = 2ⁿ·2ʳ, |r| ≤ ½, for −126 ≤ x ≤ 127."""
    n, power = rounded_power(x)
    r = subtract(x, n)
    series = multiply_add(r, broadcast(C6), broadcast(C5))
    series = multiply_add(r, series, broadcast(C4))
    series = multiply_add(r, series, broadcast(C3))
    series = multiply_add(r, series, broadcast(C2))
    series = multiply_add(r, series, broadcast(C1))
    return power, multiply(r, series)


@njit(**INLINED)
def exp_nonpositive(x: Any) -> Any:
    """eˣ for x ≤ 0; 0 below 2⁻¹²⁶; NaN stays NaN."""
    exponent = multiply(x, broadcast(LOG2_E))
    power, rest = power_parts(exponent)
    weight = multiply_add(power, rest, power)
    return where_below(exponent, broadcast(SMALLEST_POWER), no_floats(), weight)


@njit(**INLINED)
def exp(x: Any) -> Any:
    """eˣ = 2ⁿ·eʳ, |r| ≤ ln(2)/2, by Taylor's series; 0 below −87, e⁸⁸ above 88."""
    bound = smaller(larger(x, broadcast(SMALLEST_EXPONENT)), broadcast(LARGEST_EXPONENT))
    n = rounded(multiply(bound, broadcast(LOG2_E)))
    r = multiply_add(n, broadcast(-LN2_HIGH), bound)
    r = multiply_add(n, broadcast(-LN2_LOW), r)
    series = multiply_add(r, broadcast(F6), broadcast(F5))
    series = multiply_add(r, series, broadcast(F4))
    series = multiply_add(r, series, broadcast(F3))
    series = multiply_add(r, series, broadcast(F2))
    series = multiply_add(r, series, broadcast(ONE))
    series = multiply_add(r, series, broadcast(ONE))
    power = power_of_two(as_ints(n))
    return where_below(x, broadcast(SMALLEST_EXPONENT), broadcast(ZERO), multiply(series, power))
