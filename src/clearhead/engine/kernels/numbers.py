"""Activations, elementwise on vectors, and the quantisation of vectors."""
# numba's decorators have no types, and only LLVM knows the type of a vector.
# mypy: disable-error-code="untyped-decorator, no-any-return"

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from clearhead.engine.kernels.products import products_of_this_machine
from clearhead.engine.kernels.structures import GROUP
from clearhead.kernels.compiling import INLINED
from clearhead.kernels.exponential import exp
from clearhead.kernels.memory import load_floats, put_float, put_int, store_floats
from clearhead.kernels.vectors import (
    absolute,
    add,
    as_ints,
    broadcast,
    divide,
    int_sum_of,
    larger,
    largest_of,
    multiply,
    multiply_add,
    rounded,
    subtract,
    sum_of,
    where_below,
)

ZERO, ONE, HALF = np.float32(0), np.float32(1), np.float32(0.5)
MINUS_INFINITY = np.float32(-np.inf)

products = products_of_this_machine()
dot_first, dot_second = products.dot_first, products.dot_second
joined, store_split = products.joined, products.store_split


@njit(**INLINED)
def sigmoid(x: Any) -> Any:
    """1 / (1 + e⁻ˣ)."""
    return divide(broadcast(ONE), add(broadcast(ONE), exp(subtract(broadcast(ZERO), x))))


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
    """Return x·Φ(x), by the error function."""
    size = multiply(absolute(x), broadcast(ROOT_HALF))
    t = divide(broadcast(ONE), multiply_add(size, broadcast(ERF_P), broadcast(ONE)))
    series = multiply_add(t, broadcast(ERF_5), broadcast(ERF_4))
    series = multiply_add(t, series, broadcast(ERF_3))
    series = multiply_add(t, series, broadcast(ERF_2))
    series = multiply(t, multiply_add(t, series, broadcast(ERF_1)))
    tail = multiply(
        broadcast(HALF), multiply(series, exp(subtract(broadcast(ZERO), multiply(size, size))))
    )
    return multiply(x, where_below(x, broadcast(ZERO), tail, subtract(broadcast(ONE), tail)))


@njit(**INLINED)
def gelu_tanh(x: Any) -> Any:
    """Return x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³))); (1 + tanh(y))/2 is sigmoid(2y)."""
    inner = multiply_add(multiply(x, multiply(x, x)), broadcast(CUBIC), x)
    return multiply(x, sigmoid(multiply(broadcast(ROOT_8_OVER_PI), inner)))


ACTIVATIONS = ("relu", "gelu", "gelu_tanh", "silu")


@njit(**INLINED)
def activated(x: Any, activation: int) -> Any:
    """Apply the activation with this index in ACTIVATIONS."""
    if activation == 3:
        result = multiply(x, sigmoid(x))
    elif activation == 2:
        result = gelu_tanh(x)
    elif activation == 1:
        result = gelu(x)
    else:
        result = larger(broadcast(ZERO), x)  # in this order NaN stays NaN
    return result


# The quantised vectors of a step's tokens lie group by group, so that a product reads on in one
# direction. Of a group there are the 32 integers of 16 bits of every token, then every token's
# scale, scale·Σ, −128·Σ, and −128·Σ of either half. Σ is the sum of the integers: it corrects for
# weights that are stored without a sign. At the end the numbers themselves, token by token, for
# weights that are floats.
LARGEST_INTEGER = np.float32(127 * 256)
SPLIT_BYTES = 2 * GROUP
FLOATS_AT = SPLIT_BYTES + 20
QUANTISED_GROUP_BYTES = FLOATS_AT + 4 * GROUP  # bytes of one group of one token


@njit(**INLINED)
def integers_at(vectors: int, group: int, token: int, tokens: int) -> int:
    """Address of a token's integers of one group, among the vectors of so many tokens."""
    return vectors + FLOATS_AT * tokens * group + SPLIT_BYTES * token


@njit(**INLINED)
def scale_at(vectors: int, group: int, token: int, tokens: int) -> int:
    """Address of a token's scale of one group; its other numbers follow, 4·tokens bytes apart."""
    return vectors + FLOATS_AT * tokens * group + SPLIT_BYTES * tokens + 4 * token


@njit(**INLINED)
def floats_at(vectors: int, groups: int, token: int, tokens: int) -> int:
    """Address of a token's numbers before they were quantised."""
    return vectors + FLOATS_AT * tokens * groups + 4 * GROUP * groups * token


@njit(**INLINED)
def zero_or_nan(first: Any, second: Any) -> Any:
    """0 if all 32 numbers are finite, NaN otherwise: maxima and whole numbers lose NaN."""
    zero = broadcast(ZERO)
    return sum_of(multiply_add(first, zero, multiply(second, zero)))


@njit(**INLINED)
def quantise_group(
    first: Any, second: Any, vectors: int, groups: int, group: int, token: int, tokens: int
) -> None:
    """Quantise 32 numbers: one group, of ``groups``, of one of the vectors of ``tokens`` tokens.

    If one of them is NaN or infinite, the scale is NaN, and with it every product.
    """
    largest = largest_of(larger(absolute(first), absolute(second)))
    inverse = LARGEST_INTEGER / largest if largest > ZERO else ZERO
    first_integers = as_ints(rounded(multiply(first, broadcast(inverse))))
    second_integers = as_ints(rounded(multiply(second, broadcast(inverse))))
    integers = integers_at(vectors, group, token, tokens)
    store_split(integers, first_integers)
    store_split(integers + GROUP, second_integers)
    first_sum, second_sum = int_sum_of(first_integers), int_sum_of(second_integers)
    total = first_sum + second_sum
    scale = largest / LARGEST_INTEGER + zero_or_nan(first, second)
    scales = scale_at(vectors, group, token, tokens)
    put_float(scales, scale)
    put_float(scales + 4 * tokens, scale * np.float32(total))
    put_int(scales + 8 * tokens, np.int32(-128 * total))
    put_int(scales + 12 * tokens, np.int32(-128 * first_sum))
    put_int(scales + 16 * tokens, np.int32(-128 * second_sum))
    numbers = floats_at(vectors, groups, token, tokens) + 4 * GROUP * group
    store_floats(numbers, first)
    store_floats(numbers + 64, second)


@njit(**INLINED)
def quantise(values: int, vectors: int, groups: int, token: int, tokens: int) -> None:
    """Quantise float32 numbers: one of the vectors of ``tokens`` tokens."""
    for group in range(groups):
        source = values + 4 * GROUP * group
        first, second = load_floats(source), load_floats(source + 64)
        quantise_group(first, second, vectors, groups, group, token, tokens)
