"""Products of a quantised matrix and quantised vectors: 16 rows at a time, one row in each lane, so
no sum across lanes is needed.

A tile holds 16 rows. For each group of 32 columns it holds, in this order:

- 4 bits: the rows' 16 scales and 16 minima (half precision), then four vectors of 16·4 bytes:
  byte b of lane r in vector j holds the weights of row r at column 4j + b and, in its upper half,
  16 + 4j + b;
- 8 bits: the rows' 16 scales, then eight vectors of 16·4 bytes: column 4j + b, stored plus 128.

A weight is scale·q + minimum, or scale·(q − 128).
"""
# numba's decorators have no types, and only LLVM knows the type of a vector.
# mypy: disable-error-code="untyped-decorator, no-any-return"

from __future__ import annotations

from typing import Any

from numba import njit

from clearhead.engine.kernels.numbers import (
    SPLIT_BYTES,
    dot_first,
    dot_second,
    joined,
)
from clearhead.engine.kernels.parts import matrix_at, part
from clearhead.engine.kernels.structures import TILE_BYTES
from clearhead.kernels.compiling import INLINED
from clearhead.kernels.memory import (
    broadcast_float_at,
    broadcast_int_at,
    load_halves,
    load_ints,
    store_floats,
)
from clearhead.kernels.vectors import (
    add_ints,
    as_floats,
    high_nibbles,
    low_nibbles,
    multiply,
    multiply_add,
    no_floats,
    no_ints,
)

BYTES_4, BYTES_8 = TILE_BYTES[4], TILE_BYTES[8]


@njit(**INLINED)
def dot_group(
    w0: Any, w1: Any, w2: Any, w3: Any, w4: Any, w5: Any, w6: Any, w7: Any, x: int, start: Any
) -> Any:
    """Return start + Σ w·x over one group; w_j holds columns 4j … 4j + 3 of every row."""
    a = dot_first(no_ints(), w0, broadcast_int_at(x))
    b = dot_second(start, w0, broadcast_int_at(x + 4))
    c = dot_first(no_ints(), w1, broadcast_int_at(x + 8))
    d = dot_second(no_ints(), w1, broadcast_int_at(x + 12))
    a = dot_first(a, w2, broadcast_int_at(x + 16))
    b = dot_second(b, w2, broadcast_int_at(x + 20))
    c = dot_first(c, w3, broadcast_int_at(x + 24))
    d = dot_second(d, w3, broadcast_int_at(x + 28))
    a = dot_first(a, w4, broadcast_int_at(x + 32))
    b = dot_second(b, w4, broadcast_int_at(x + 36))
    c = dot_first(c, w5, broadcast_int_at(x + 40))
    d = dot_second(d, w5, broadcast_int_at(x + 44))
    a = dot_first(a, w6, broadcast_int_at(x + 48))
    b = dot_second(b, w6, broadcast_int_at(x + 52))
    c = dot_first(c, w7, broadcast_int_at(x + 56))
    d = dot_second(d, w7, broadcast_int_at(x + 60))
    return joined(add_ints(a, c), add_ints(b, d))


@njit(**INLINED)
def add_group_4(
    total: Any, w0: Any, w1: Any, w2: Any, w3: Any, scale: Any, minimum: Any,
    vector: int, groups: int, group: int,
) -> Any:  # fmt: skip
    """Add the product with one group of 4-bit weights to one token's total."""
    dots = dot_group(
        low_nibbles(w0), low_nibbles(w1), low_nibbles(w2), low_nibbles(w3),
        high_nibbles(w0), high_nibbles(w1), high_nibbles(w2), high_nibbles(w3),
        vector + group * SPLIT_BYTES, no_ints(),
    )  # fmt: skip
    scales = vector + groups * SPLIT_BYTES + 4 * group
    total = multiply_add(as_floats(dots), multiply(scale, broadcast_float_at(scales)), total)
    return multiply_add(minimum, broadcast_float_at(scales + 4 * groups), total)


@njit(**INLINED)
def multiply_one_4_bit(tile: int, groups: int, vector: int, result: int) -> None:
    """Multiply 16 rows with the vector of one token."""
    total = no_floats()
    for group in range(groups):
        w = tile + group * BYTES_4
        w0, w1, w2, w3 = (
            load_ints(w + 64), load_ints(w + 128), load_ints(w + 192), load_ints(w + 256),
        )  # fmt: skip
        scale, minimum = load_halves(w), load_halves(w + 32)
        total = add_group_4(total, w0, w1, w2, w3, scale, minimum, vector, groups, group)
    store_floats(result, total)


@njit(**INLINED)
def multiply_four_4_bit(tile: int, groups: int, vector: int, stride: int, result: int) -> None:
    """Multiply 16 rows with the vectors of four tokens: the weights are unpacked once."""
    t0, t1, t2, t3 = no_floats(), no_floats(), no_floats(), no_floats()
    r1, r2, r3 = vector + stride, vector + 2 * stride, vector + 3 * stride
    for group in range(groups):
        w = tile + group * BYTES_4
        w0, w1, w2, w3 = (
            load_ints(w + 64), load_ints(w + 128), load_ints(w + 192), load_ints(w + 256),
        )  # fmt: skip
        scale, minimum = load_halves(w), load_halves(w + 32)
        t0 = add_group_4(t0, w0, w1, w2, w3, scale, minimum, vector, groups, group)
        t1 = add_group_4(t1, w0, w1, w2, w3, scale, minimum, r1, groups, group)
        t2 = add_group_4(t2, w0, w1, w2, w3, scale, minimum, r2, groups, group)
        t3 = add_group_4(t3, w0, w1, w2, w3, scale, minimum, r3, groups, group)
    store_floats(result, t0)
    store_floats(result + 64, t1)
    store_floats(result + 128, t2)
    store_floats(result + 192, t3)


@njit(**INLINED)
def add_group_8(
    total: Any, w0: Any, w1: Any, w2: Any, w3: Any, w4: Any, w5: Any, w6: Any, w7: Any,
    scale: Any, vector: int, groups: int, group: int,
) -> Any:  # fmt: skip
    """Add the product with one group of 8-bit weights to one token's total."""
    scales = vector + groups * SPLIT_BYTES + 4 * group
    dots = dot_group(
        w0, w1, w2, w3, w4, w5, w6, w7,
        vector + group * SPLIT_BYTES, broadcast_int_at(scales + 8 * groups),
    )  # fmt: skip
    return multiply_add(as_floats(dots), multiply(scale, broadcast_float_at(scales)), total)


@njit(**INLINED)
def multiply_one_8_bit(tile: int, groups: int, vector: int, result: int) -> None:
    """Multiply 16 rows with the vector of one token."""
    total = no_floats()
    for group in range(groups):
        w = tile + group * BYTES_8 + 32
        w0, w1, w2, w3 = load_ints(w), load_ints(w + 64), load_ints(w + 128), load_ints(w + 192)
        w4, w5, w6, w7 = (
            load_ints(w + 256), load_ints(w + 320), load_ints(w + 384), load_ints(w + 448),
        )  # fmt: skip
        scale = load_halves(w - 32)
        total = add_group_8(
            total, w0, w1, w2, w3, w4, w5, w6, w7, scale, vector, groups, group
        )  # fmt: skip
    store_floats(result, total)


@njit(**INLINED)
def multiply_four_8_bit(tile: int, groups: int, vector: int, stride: int, result: int) -> None:
    """Multiply 16 rows with the vectors of four tokens."""
    t0, t1, t2, t3 = no_floats(), no_floats(), no_floats(), no_floats()
    r1, r2, r3 = vector + stride, vector + 2 * stride, vector + 3 * stride
    for group in range(groups):
        w = tile + group * BYTES_8 + 32
        w0, w1, w2, w3 = load_ints(w), load_ints(w + 64), load_ints(w + 128), load_ints(w + 192)
        w4, w5, w6, w7 = (
            load_ints(w + 256), load_ints(w + 320), load_ints(w + 384), load_ints(w + 448),
        )  # fmt: skip
        s = load_halves(w - 32)
        t0 = add_group_8(t0, w0, w1, w2, w3, w4, w5, w6, w7, s, vector, groups, group)
        t1 = add_group_8(t1, w0, w1, w2, w3, w4, w5, w6, w7, s, r1, groups, group)
        t2 = add_group_8(t2, w0, w1, w2, w3, w4, w5, w6, w7, s, r2, groups, group)
        t3 = add_group_8(t3, w0, w1, w2, w3, w4, w5, w6, w7, s, r3, groups, group)
    store_floats(result, t0)
    store_floats(result + 64, t1)
    store_floats(result + 128, t2)
    store_floats(result + 192, t3)


@part
def multiply_tile(
    matrix_address: int, tile: int, vector: int, stride: int, tokens: int, result: int
) -> None:
    """Multiply 16 rows with the vector of every token: 16 results for each, in order."""
    matrix = matrix_at(matrix_address)
    groups = matrix.groups
    four_bits = matrix.bits == 4
    weights = matrix.weights + tile * groups * (BYTES_4 if four_bits else BYTES_8)
    whole = tokens // 4 * 4
    for token in range(0, whole, 4):
        source, target = vector + token * stride, result + token * 64
        if four_bits:
            multiply_four_4_bit(weights, groups, source, stride, target)
        else:
            multiply_four_8_bit(weights, groups, source, stride, target)
    for token in range(whole, tokens):
        source, target = vector + token * stride, result + token * 64
        if four_bits:
            multiply_one_4_bit(weights, groups, source, target)
        else:
            multiply_one_8_bit(weights, groups, source, target)
