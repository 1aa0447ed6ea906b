"""Functions of vectors that the engine needs: exp and what is made of it, and whole numbers with
their scale.
"""
# numba's decorators have no types, and what its vectors are is known to LLVM alone.
# mypy: disable-error-code="untyped-decorator, no-any-return"

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from clearhead.attention.addresses_kernel import load_floats, put_float, put_int
from clearhead.attention.compiled_kernel import INLINED
from clearhead.attention.vectors_kernel import (
    as_ints,
    int_sum_of,
    larger,
    largest_of,
    minus,
    multiply_add,
    over,
    plus,
    plus_ints,
    power_of_two,
    rounded,
    size_of,
    smaller,
    spread,
    times,
    where_below,
)
from clearhead.generation.engine_products_kernel import products_of_this_machine
from clearhead.generation.engine_structures import GROUP

ZERO, ONE, HALF = np.float32(0), np.float32(1), np.float32(0.5)
MINUS_INFINITY = np.float32(-np.inf)

products = products_of_this_machine()
dot_first, dot_second = products.dot_first, products.dot_second
joined, store_split = products.joined, products.store_split


# Numbers.
LARGEST_EXPONENT = np.float32(88)
SMALLEST_EXPONENT = np.float32(-87)
LOG2_E = np.float32(1 / math.log(2))
LN2_HIGH = np.float32(355 / 512)  # so few bits that n·LN2_HIGH is exact
LN2_LOW = np.float32(math.log(2) - 355 / 512)
F2, F3, F4, F5, F6 = (np.float32(1 / math.factorial(n)) for n in range(2, 7))


@njit(**INLINED)
def exp(x: Any) -> Any:
    """eˣ = 2ⁿ·eʳ, |r| ≤ ln(2)/2, by Taylor's series; 0 below −87, e⁸⁸ above 88."""
    bound = smaller(larger(x, spread(SMALLEST_EXPONENT)), spread(LARGEST_EXPONENT))
    n = rounded(times(bound, spread(LOG2_E)))
    r = multiply_add(n, spread(-LN2_HIGH), bound)
    r = multiply_add(n, spread(-LN2_LOW), r)
    series = multiply_add(r, spread(F6), spread(F5))
    series = multiply_add(r, series, spread(F4))
    series = multiply_add(r, series, spread(F3))
    series = multiply_add(r, series, spread(F2))
    series = multiply_add(r, series, spread(ONE))
    series = multiply_add(r, series, spread(ONE))
    return where_below(
        x, spread(SMALLEST_EXPONENT), spread(ZERO), times(series, power_of_two(as_ints(n)))
    )


@njit(**INLINED)
def sigmoid(x: Any) -> Any:
    """1 / (1 + e⁻ˣ)."""
    return over(spread(ONE), plus(spread(ONE), exp(minus(spread(ZERO), x))))


# Abramowitz and Stegun, 7.1.26: erf(x) to 1.5e-7.
ERF_P = np.float32(0.3275911)
ERF_1, ERF_2 = np.float32(0.254829592), np.float32(-0.284496736)
ERF_3, ERF_4 = np.float32(1.421413741), np.float32(-1.453152027)
ERF_5 = np.float32(1.061405429)
ROOT_HALF = np.float32(math.sqrt(0.5))
ROOT_8_OVER_PI = np.float32(math.sqrt(8 / math.pi))
CUBIC = np.float32(0.044715)


@njit(**INLINED)
def gelu(x: Any) -> Any:
    """x·Φ(x), by the error function."""
    size = times(size_of(x), spread(ROOT_HALF))
    t = over(spread(ONE), multiply_add(size, spread(ERF_P), spread(ONE)))
    series = multiply_add(t, spread(ERF_5), spread(ERF_4))
    series = multiply_add(t, series, spread(ERF_3))
    series = multiply_add(t, series, spread(ERF_2))
    series = times(t, multiply_add(t, series, spread(ERF_1)))
    tail = times(spread(HALF), times(series, exp(minus(spread(ZERO), times(size, size)))))
    return times(x, where_below(x, spread(ZERO), tail, minus(spread(ONE), tail)))


@njit(**INLINED)
def gelu_tanh(x: Any) -> Any:
    """x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³))), and (1 + tanh(y))/2 is sigmoid(2y)."""
    inner = multiply_add(times(x, times(x, x)), spread(CUBIC), x)
    return times(x, sigmoid(times(spread(ROOT_8_OVER_PI), inner)))


ACTIVATIONS = ("relu", "gelu", "gelu_tanh", "silu")


@njit(**INLINED)
def activated(x: Any, activation: int) -> Any:
    """The activation by its number in ACTIVATIONS."""
    if activation == 3:
        result = times(x, sigmoid(x))
    elif activation == 2:
        result = gelu_tanh(x)
    elif activation == 1:
        result = gelu(x)
    else:
        result = larger(x, spread(ZERO))
    return result


# What a matrix is multiplied with: groups of 32 whole numbers of 16 bits, and for each group its
# scale, scale·Σ and −128·Σ. The last two make up for weights that are stored without a sign.
LARGEST_WHOLE = np.float32(127 * 256)
SPLIT_BYTES = 2 * GROUP
RECORD_BYTES = SPLIT_BYTES + 12  # of one group


@njit(**INLINED)
def quantise_group(first: Any, second: Any, record: int, groups: int, group: int) -> None:
    """Write 32 numbers as group number ``group`` of a record of ``groups``."""
    largest = largest_of(larger(size_of(first), size_of(second)))
    inverse = LARGEST_WHOLE / largest if largest > ZERO else ZERO
    first_wholes = as_ints(rounded(times(first, spread(inverse))))
    second_wholes = as_ints(rounded(times(second, spread(inverse))))
    store_split(record + group * SPLIT_BYTES, first_wholes)
    store_split(record + group * SPLIT_BYTES + GROUP, second_wholes)
    total = int_sum_of(plus_ints(first_wholes, second_wholes))
    scale = largest / LARGEST_WHOLE
    scales = record + groups * SPLIT_BYTES + 4 * group
    put_float(scales, scale)
    put_float(scales + 4 * groups, scale * np.float32(total))
    put_int(scales + 8 * groups, np.int32(-128 * total))


@njit(**INLINED)
def quantise(values: int, record: int, groups: int) -> None:
    """Write a vector of float32 numbers as a record."""
    for group in range(groups):
        place = values + 4 * GROUP * group
        quantise_group(load_floats(place), load_floats(place + 64), record, groups, group)
