"""Products of a tile and quantised vectors: 16 rows at a time, one row in each lane.

One template serves all kinds of whole numbers; a kind gives the numbers and scales of a group
(tile_groups.py) and one of the four ways to add it up. Another template serves kinds of floats.
A kind's product is compiled when a matrix of it is met, and called by its address.

A vector's whole numbers have a sign, a tile's have none, so q − 8 is multiplied as q·x, and 8·Σx
is subtracted: exact whole numbers, which the vector brings along (see numbers.py).
"""
# numba's decorators have no types, and only LLVM knows the type of a vector.
# mypy: disable-error-code="untyped-decorator, no-any-return"

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numba import njit, types

from clearhead.engine.kernels import tile_groups as of
from clearhead.engine.kernels.layouts import Layout
from clearhead.engine.kernels.numbers import (
    FLOATS_AT,
    SPLIT_BYTES,
    dot_first,
    dot_second,
    joined,
)
from clearhead.engine.kernels.parts import matrix_at, part
from clearhead.engine.kernels.structures import GROUP, TILE
from clearhead.kernels.compiling import INLINED, bound, compiled
from clearhead.kernels.memory import (
    broadcast_float_at,
    broadcast_int_at,
    call_with_six,
    keep_order,
    load_brain_floats,
    load_floats,
    load_halves,
    store_floats,
)
from clearhead.kernels.vectors import (
    add,
    add_ints,
    as_floats,
    divided_by_power,
    multiply,
    multiply_add,
    no_floats,
    no_ints,
)


@njit(**INLINED)
def dot_half(w0: Any, w1: Any, w2: Any, w3: Any, x: int, start: Any) -> Any:
    """Return start + Σ w·x over 16 columns; w_j holds columns 4j … 4j + 3 of every row."""
    a = dot_first(no_ints(), w0, broadcast_int_at(x))
    b = dot_second(start, w0, broadcast_int_at(x + 4))
    c = dot_first(no_ints(), w1, broadcast_int_at(x + 8))
    d = dot_second(no_ints(), w1, broadcast_int_at(x + 12))
    a = dot_first(a, w2, broadcast_int_at(x + 16))
    b = dot_second(b, w2, broadcast_int_at(x + 20))
    c = dot_first(c, w3, broadcast_int_at(x + 24))
    d = dot_second(d, w3, broadcast_int_at(x + 28))
    return joined(add_ints(a, c), add_ints(b, d))


@njit(**INLINED)
def dot_group(w: Any, x: int, start: Any) -> Any:
    """Return start + Σ w·x over 32 columns."""
    a = dot_first(no_ints(), w[0], broadcast_int_at(x))
    b = dot_second(start, w[0], broadcast_int_at(x + 4))
    c = dot_first(no_ints(), w[1], broadcast_int_at(x + 8))
    d = dot_second(no_ints(), w[1], broadcast_int_at(x + 12))
    a = dot_first(a, w[2], broadcast_int_at(x + 16))
    b = dot_second(b, w[2], broadcast_int_at(x + 20))
    c = dot_first(c, w[3], broadcast_int_at(x + 24))
    d = dot_second(d, w[3], broadcast_int_at(x + 28))
    a = dot_first(a, w[4], broadcast_int_at(x + 32))
    b = dot_second(b, w[4], broadcast_int_at(x + 36))
    c = dot_first(c, w[5], broadcast_int_at(x + 40))
    d = dot_second(d, w[5], broadcast_int_at(x + 44))
    a = dot_first(a, w[6], broadcast_int_at(x + 48))
    b = dot_second(b, w[6], broadcast_int_at(x + 52))
    c = dot_first(c, w[7], broadcast_int_at(x + 56))
    d = dot_second(d, w[7], broadcast_int_at(x + 60))
    return joined(add_ints(a, c), add_ints(b, d))


# Ways to add the product with one group to one token's total.
power = 0  # the offset is 128 / 2ᵖ; the templates' copies have their own


def add_offset(total: Any, w: Any, scales: Any, vector: int, groups: int, group: int) -> Any:
    """scale·(q − offset): Q4_0, Q5_0, Q8_0."""
    tail = vector + groups * SPLIT_BYTES + 4 * group
    start = divided_by_power(broadcast_int_at(tail + 8 * groups), power)
    dots = as_floats(dot_group(w, vector + group * SPLIT_BYTES, start))
    return multiply_add(dots, multiply(scales[0], broadcast_float_at(tail)), total)


@njit(**INLINED)
def add_minimum(total: Any, w: Any, scales: Any, vector: int, groups: int, group: int) -> Any:
    """scale·q + minimum: Q4_1, Q5_1, Q4_K, Q5_K."""
    tail = vector + groups * SPLIT_BYTES + 4 * group
    dots = as_floats(dot_group(w, vector + group * SPLIT_BYTES, no_ints()))
    total = multiply_add(dots, multiply(scales[0], broadcast_float_at(tail)), total)
    return multiply_add(scales[1], broadcast_float_at(tail + 4 * groups), total)


def add_half_offsets(total: Any, w: Any, scales: Any, vector: int, groups: int, group: int) -> Any:
    """scale·(q − offset) with a scale for each 16 columns: Q3_K, Q6_K."""
    tail, x = vector + groups * SPLIT_BYTES + 4 * group, vector + group * SPLIT_BYTES
    start = divided_by_power(broadcast_int_at(tail + 12 * groups), power)
    first = as_floats(dot_half(w[0], w[1], w[2], w[3], x, start))
    start = divided_by_power(broadcast_int_at(tail + 16 * groups), power)
    second = as_floats(dot_half(w[4], w[5], w[6], w[7], x + GROUP, start))
    both = multiply_add(first, scales[0], multiply(second, scales[1]))
    return multiply_add(both, broadcast_float_at(tail), total)


@njit(**INLINED)
def add_half_minima(total: Any, w: Any, scales: Any, vector: int, groups: int, group: int) -> Any:
    """scale·q − minimum with both for each 16 columns: Q2_K."""
    tail, x = vector + groups * SPLIT_BYTES + 4 * group, vector + group * SPLIT_BYTES
    first = as_floats(dot_half(w[0], w[1], w[2], w[3], x, no_ints()))
    second = as_floats(dot_half(w[4], w[5], w[6], w[7], x + GROUP, no_ints()))
    both = multiply_add(first, scales[0], multiply(second, scales[1]))
    both = multiply_add(as_floats(broadcast_int_at(tail + 12 * groups)), scales[2], both)
    both = multiply_add(as_floats(broadcast_int_at(tail + 16 * groups)), scales[3], both)
    return multiply_add(both, broadcast_float_at(tail), total)


def _with_power(template: Callable[..., Any], offset: int) -> Any:
    shift = 7 - offset.bit_length() + 1  # 128 / 2ˢ is the offset
    return njit(**INLINED)(bound(template, f"{template.__name__}_{offset}", power=shift))


numbers_of, scales_of, add_group = of.q4_1_numbers, of.q4_1_scales, add_minimum
common_of = of.nothing_common
block_bytes = 0  # of 16 rows


@njit(**INLINED)
def clear(result: int, tokens: int) -> None:
    """Set the totals of all tokens to 0."""
    for token in range(tokens):
        store_floats(result + 64 * token, no_floats())


def add_to_all(
    block: int, part: int, groups: int, group: int, vector: int, stride: int, tokens: int,
    result: int,
) -> None:  # fmt: skip
    """Add the products with one group to the totals of all tokens, which are in memory."""
    numbers, scales = numbers_of(block, part), scales_of(block, part, common_of(block))
    for token in range(tokens):
        total, source = load_floats(result + 64 * token), vector + token * stride
        total = add_group(total, numbers, scales, source, groups, group)
        store_floats(result + 64 * token, total)


def add_part(
    total: Any, block: int, part: int, common: Any, vector: int, groups: int, group: int
) -> Any:
    """Add the product with part ``part`` of a block to one token's total."""
    numbers, scales = numbers_of(block, part), scales_of(block, part, common)
    return add_group(total, numbers, scales, vector, groups, group + part)


def multiply_numbers(
    tile: int, groups: int, vector: int, stride: int, tokens: int, result: int
) -> None:
    """Multiply a tile of blocks of 32 whole numbers with the vector of every token.

    A group is unpacked once for all tokens, whose totals wait in memory meanwhile.
    """
    if tokens == 1:
        total = no_floats()
        for group in range(groups):
            block = tile + block_bytes * group
            total = add_part(total, block, 0, common_of(block), vector, groups, group)
        store_floats(result, total)
        return
    clear(result, tokens)
    for group in range(groups):
        block = tile + block_bytes * group
        add_to_all(block, 0, groups, group, vector, stride, tokens, result)


def multiply_large_blocks(
    tile: int, groups: int, vector: int, stride: int, tokens: int, result: int
) -> None:
    """Multiply a tile of blocks of 256 whole numbers with the vector of every token.

    For one token the eight parts are written out. Loads stay in order: the processor fetches memory
    ahead of a loop only if it goes on in one direction.
    """
    if tokens == 1:
        total = no_floats()
        for group in range(0, groups, 8):
            block = tile + block_bytes * (group // 8)
            common = common_of(block)
            total = add_part(total, block, 0, common, vector, groups, group)
            total = add_part(total, block, 1, common, vector, groups, group)
            keep_order()
            total = add_part(total, block, 2, common, vector, groups, group)
            total = add_part(total, block, 3, common, vector, groups, group)
            keep_order()
            total = add_part(total, block, 4, common, vector, groups, group)
            total = add_part(total, block, 5, common, vector, groups, group)
            keep_order()
            total = add_part(total, block, 6, common, vector, groups, group)
            total = add_part(total, block, 7, common, vector, groups, group)
            keep_order()
        store_floats(result, total)
        return
    clear(result, tokens)
    for group in range(groups):
        block = tile + block_bytes * (group // 8)
        add_to_all(block, group % 8, groups, group, vector, stride, tokens, result)


@njit(**INLINED)
def store_four(result: int, t0: Any, t1: Any, t2: Any, t3: Any) -> None:
    """Store the results of four tokens."""
    store_floats(result, t0)
    store_floats(result + 64, t1)
    store_floats(result + 128, t2)
    store_floats(result + 192, t3)


column_of, column_bytes = load_halves, 32


def multiply_floats(
    tile: int, groups: int, vector: int, stride: int, tokens: int, result: int
) -> None:
    """Multiply a tile of floats with the vector of every token, even and odd columns apart."""
    inputs = vector + FLOATS_AT * groups
    whole = tokens // 4 * 4
    for token in range(0, whole, 4):
        x0 = inputs + token * stride
        x1, x2, x3 = x0 + stride, x0 + 2 * stride, x0 + 3 * stride
        a0, a1, a2, a3 = no_floats(), no_floats(), no_floats(), no_floats()
        b0, b1, b2, b3 = no_floats(), no_floats(), no_floats(), no_floats()
        for column in range(0, GROUP * groups, 2):
            where = tile + column * column_bytes
            even, odd, at = column_of(where), column_of(where + column_bytes), 4 * column
            a0 = multiply_add(even, broadcast_float_at(x0 + at), a0)
            b0 = multiply_add(odd, broadcast_float_at(x0 + at + 4), b0)
            a1 = multiply_add(even, broadcast_float_at(x1 + at), a1)
            b1 = multiply_add(odd, broadcast_float_at(x1 + at + 4), b1)
            a2 = multiply_add(even, broadcast_float_at(x2 + at), a2)
            b2 = multiply_add(odd, broadcast_float_at(x2 + at + 4), b2)
            a3 = multiply_add(even, broadcast_float_at(x3 + at), a3)
            b3 = multiply_add(odd, broadcast_float_at(x3 + at + 4), b3)
        store_four(result + 64 * token, add(a0, b0), add(a1, b1), add(a2, b2), add(a3, b3))
    for token in range(whole, tokens):
        source = inputs + token * stride
        a, b = no_floats(), no_floats()
        for column in range(0, GROUP * groups, 2):
            where = tile + column * column_bytes
            a = multiply_add(column_of(where), broadcast_float_at(source + 4 * column), a)
            odd = column_of(where + column_bytes)
            b = multiply_add(odd, broadcast_float_at(source + 4 * column + 4), b)
        store_floats(result + 64 * token, add(a, b))


NUMBERS: dict[str, tuple[Any, Any, Any]] = {
    "Q4_0": (of.q4_0_numbers, of.q4_0_scales, _with_power(add_offset, 8)),
    "Q4_1": (of.q4_1_numbers, of.q4_1_scales, add_minimum),
    "Q5_0": (of.q5_0_numbers, of.q5_0_scales, _with_power(add_offset, 16)),
    "Q5_1": (of.q5_1_numbers, of.q5_1_scales, add_minimum),
    "Q8_0": (of.q8_0_numbers, of.q8_0_scales, _with_power(add_offset, 128)),
    "Q2_K": (of.q2_k_numbers, of.q2_k_scales, add_half_minima),
    "Q3_K": (of.q3_k_numbers, of.q3_k_scales, _with_power(add_half_offsets, 4)),
    "Q4_K": (of.q4_k_numbers, of.q4_k_scales, add_minimum),
    "Q5_K": (of.q5_k_numbers, of.q5_k_scales, add_minimum),
    "Q6_K": (of.q6_k_numbers, of.q6_k_scales, _with_power(add_half_offsets, 32)),
}
COMMON = {
    "Q2_K": of.scale_and_minimum_over_128,
    "Q3_K": of.scale_in_common,
    "Q4_K": of.scale_and_minimum_in_common,
    "Q5_K": of.scale_and_minimum_in_common,
    "Q6_K": of.scale_in_common,
}
FLOATS = {"F16": (load_halves, 32), "BF16": (load_brain_floats, 32), "F32": (load_floats, 64)}


@functools.cache
def multiply_function(kind: str) -> int:
    """Compile or load the product of a kind; the address of
    f(tile, groups, vector, stride, tokens, result)."""
    name = f"multiply_{kind.lower()}"
    if kind in FLOATS:
        load, size = FLOATS[kind]
        function = bound(multiply_floats, name, column_of=load, column_bytes=size)
    else:
        function = _product_of_numbers(kind, name)
    return int(compiled(function, types.void(*[types.int64] * 6)).address)


def _product_of_numbers(kind: str, name: str) -> Callable[..., Any]:
    numbers, scales, way = NUMBERS[kind]
    layout = Layout.of(kind)
    common = {"common_of": COMMON.get(kind, of.nothing_common)}
    ways = {"numbers_of": numbers, "scales_of": scales, "add_group": way} | common
    inner = {
        template.__name__: njit(**INLINED)(bound(template, f"{name}_{template.__name__}", **ways))
        for template in (add_part, add_to_all)
    }
    template = multiply_numbers if layout.length == GROUP else multiply_large_blocks
    return bound(template, name, block_bytes=TILE * layout.bytes, **common, **inner)


@part
def multiply_tile(
    matrix_address: int, tile: int, vector: int, stride: int, tokens: int, result: int
) -> None:
    """Multiply 16 rows with the vector of every token: 16 results for each, in order."""
    matrix = matrix_at(matrix_address)
    weights = matrix.weights + tile * matrix.tile_bytes
    call_with_six(matrix.multiply, weights, matrix.groups, vector, stride, tokens, result)
