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
from typing import Any, NamedTuple

from numba import njit, types

from clearhead.engine.kernels import tile_groups as of
from clearhead.engine.kernels.layouts import Layout
from clearhead.engine.kernels.numbers import (
    SPLIT_BYTES,
    dot_first,
    dot_second,
    floats_at,
    integers_at,
    joined,
    scale_at,
)
from clearhead.engine.kernels.parts import matrix_at, part
from clearhead.engine.kernels.structures import GROUP, LINE, TILE, TILE_RESULTS_BYTES
from clearhead.kernels.compiling import INLINED, bound, compiled
from clearhead.kernels.memory import (
    broadcast_float_at,
    broadcast_int_at,
    call_with_six,
    fetch_once,
    keep_order,
    load_brain_floats,
    load_floats,
    load_halves,
    store_floats,
)
from clearhead.kernels.operations import has_wide_registers
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


# The same for two tiles at once: a number of the vector is loaded once for both.
@njit(**INLINED)
def dot_four(sums: Any, w: Any, u: Any, x: int) -> Any:
    """Add the products with 4 columns of two tiles: sums of first and second parts of either."""
    first, second = broadcast_int_at(x), broadcast_int_at(x + 4)
    return (
        dot_first(sums[0], w, first), dot_second(sums[1], w, second),
        dot_first(sums[2], u, first), dot_second(sums[3], u, second),
    )  # fmt: skip


@njit(**INLINED)
def dot_half_of_two(w: Any, u: Any, half: int, x: int, start: Any) -> Any:
    """``dot_half`` of two tiles: numbers 0 … 3 of a group (``half`` 0), or 4 … 7 (1)."""
    sums = (no_ints(), start, no_ints(), start)
    if half == 0:
        sums = dot_four(sums, w[0], u[0], x)
        sums = dot_four(sums, w[1], u[1], x + 8)
        sums = dot_four(sums, w[2], u[2], x + 16)
        sums = dot_four(sums, w[3], u[3], x + 24)
    else:
        sums = dot_four(sums, w[4], u[4], x)
        sums = dot_four(sums, w[5], u[5], x + 8)
        sums = dot_four(sums, w[6], u[6], x + 16)
        sums = dot_four(sums, w[7], u[7], x + 24)
    return joined(sums[0], sums[1]), joined(sums[2], sums[3])


@njit(**INLINED)
def dot_group_of_two(w: Any, u: Any, x: int, start: Any) -> Any:
    """``dot_group`` of two tiles."""
    sums = (no_ints(), start, no_ints(), start)
    sums = dot_four(sums, w[0], u[0], x)
    sums = dot_four(sums, w[1], u[1], x + 8)
    sums = dot_four(sums, w[2], u[2], x + 16)
    sums = dot_four(sums, w[3], u[3], x + 24)
    sums = dot_four(sums, w[4], u[4], x + 32)
    sums = dot_four(sums, w[5], u[5], x + 40)
    sums = dot_four(sums, w[6], u[6], x + 48)
    sums = dot_four(sums, w[7], u[7], x + 56)
    return joined(sums[0], sums[1]), joined(sums[2], sums[3])


# Ways to add the product with one group to one token's total: the sums of whole numbers, of one
# tile or of two, then what scales and minima make of them. ``tail`` is the address of the token's
# scale (numbers.py), ``apart`` the bytes from there to the next of its numbers.
power = 0  # the offset is 128 / 2ᵖ; the templates' copies have their own


def offset_start(tail: int, apart: int) -> Any:
    """−offset·Σx, where the sums begin."""
    return divided_by_power(broadcast_int_at(tail + 2 * apart), power)


@njit(**INLINED)
def no_start(_tail: int, _apart: int) -> Any:
    """Without an offset the sums begin at 0."""
    return no_ints()


def half_offset_starts(tail: int, apart: int) -> Any:
    """−offset·Σx of either half."""
    first = divided_by_power(broadcast_int_at(tail + 3 * apart), power)
    return first, divided_by_power(broadcast_int_at(tail + 4 * apart), power)


@njit(**INLINED)
def no_starts(_tail: int, _apart: int) -> Any:
    """Zeros for either half."""
    return no_ints(), no_ints()


@njit(**INLINED)
def dot_halves(w: Any, x: int, starts: Any) -> Any:
    """Σ w·x of either half of a group."""
    first = dot_half(w[0], w[1], w[2], w[3], x, starts[0])
    return first, dot_half(w[4], w[5], w[6], w[7], x + GROUP, starts[1])


@njit(**INLINED)
def dot_halves_of_two(w: Any, u: Any, x: int, starts: Any) -> Any:
    """``dot_halves`` of two tiles."""
    first = dot_half_of_two(w, u, 0, x, starts[0])
    second = dot_half_of_two(w, u, 1, x + GROUP, starts[1])
    return (first[0], second[0]), (first[1], second[1])


@njit(**INLINED)
def with_scale(total: Any, dots: Any, scales: Any, tail: int, _apart: int) -> Any:
    """scale·(q − offset): Q4_0, Q5_0, Q8_0."""
    return multiply_add(as_floats(dots), multiply(scales[0], broadcast_float_at(tail)), total)


@njit(**INLINED)
def with_minimum(total: Any, dots: Any, scales: Any, tail: int, apart: int) -> Any:
    """scale·q + minimum: Q4_1, Q5_1, Q4_K, Q5_K."""
    scale = multiply(scales[0], broadcast_float_at(tail))
    total = multiply_add(as_floats(dots), scale, total)
    return multiply_add(scales[1], broadcast_float_at(tail + apart), total)


@njit(**INLINED)
def with_half_scales(total: Any, dots: Any, scales: Any, tail: int, _apart: int) -> Any:
    """scale·(q − offset) with a scale for each 16 columns: Q3_K, Q6_K."""
    second = multiply(as_floats(dots[1]), scales[1])
    both = multiply_add(as_floats(dots[0]), scales[0], second)
    return multiply_add(both, broadcast_float_at(tail), total)


@njit(**INLINED)
def with_half_minima(total: Any, dots: Any, scales: Any, tail: int, apart: int) -> Any:
    """scale·q − minimum with both for each 16 columns: Q2_K."""
    second = multiply(as_floats(dots[1]), scales[1])
    both = multiply_add(as_floats(dots[0]), scales[0], second)
    both = multiply_add(as_floats(broadcast_int_at(tail + 3 * apart)), scales[2], both)
    both = multiply_add(as_floats(broadcast_int_at(tail + 4 * apart)), scales[3], both)
    return multiply_add(both, broadcast_float_at(tail), total)


class Way(NamedTuple):
    """Where the sums of a group begin, the sums of one tile and of two, what is made of them."""

    start: Any
    dots: Any
    dots_of_two: Any
    finish: Any


def _starts(template: Callable[..., Any], offset: int) -> Any:
    shift = 7 - offset.bit_length() + 1  # 128 / 2ˢ is the offset
    return njit(**INLINED)(bound(template, f"{template.__name__}_{offset}", power=shift))


def _offset(offset: int) -> Way:
    return Way(_starts(offset_start, offset), dot_group, dot_group_of_two, with_scale)


def _half_offsets(offset: int) -> Way:
    starts = _starts(half_offset_starts, offset)
    return Way(starts, dot_halves, dot_halves_of_two, with_half_scales)


MINIMUM = Way(no_start, dot_group, dot_group_of_two, with_minimum)
HALF_MINIMA = Way(no_starts, dot_halves, dot_halves_of_two, with_half_minima)


# The templates. One copy for each kind has its own of these names.
numbers_of, scales_of, common_of = of.q4_1_numbers, of.q4_1_scales, of.nothing_common
start_of, dots_of, dots_of_two, finish = MINIMUM
block_bytes, block_groups = 0, 1  # of 16 rows


FETCHED_AHEAD = 6144  # bytes: a step's time on one core fell by half in Q4_K (docs/log.md)


@njit(**INLINED)
def fetch_ahead(where: int, size: int) -> None:
    """Ask for the weights that come after these, which are read now: a core that waits for memory
    only where it needs it next reads at half its speed."""
    for line in range(0, size, LINE):
        fetch_once(where + FETCHED_AHEAD + line)


@njit(**INLINED)
def clear(result: int, tokens: int) -> None:
    """Set the totals of all tokens to 0."""
    for token in range(tokens):
        store_floats(result + 64 * token, no_floats())


def add_part(total: Any, block: int, part: int, common: Any, vectors: int, group: int) -> Any:
    """Add the product with part ``part`` of a block to the total of the only token."""
    size = block_bytes // block_groups
    fetch_ahead(block + part * size, size)
    numbers, scales = numbers_of(block, part), scales_of(block, part, common)
    x, tail = integers_at(vectors, group + part, 0, 1), scale_at(vectors, group + part, 0, 1)
    return finish(total, dots_of(numbers, x, start_of(tail, 4)), scales, tail, 4)


def add_to_all(block: int, part: int, group: int, vectors: int, tokens: int, result: int) -> None:
    """Add the products with one group to the totals of all tokens, which are in memory."""
    numbers, scales = numbers_of(block, part), scales_of(block, part, common_of(block))
    x, tail = integers_at(vectors, group, 0, tokens), scale_at(vectors, group, 0, tokens)
    apart = 4 * tokens
    for token in range(tokens):
        dots = dots_of(numbers, x + SPLIT_BYTES * token, start_of(tail + 4 * token, apart))
        total = load_floats(result + 64 * token)
        total = finish(total, dots, scales, tail + 4 * token, apart)
        store_floats(result + 64 * token, total)


def add_two_to_all(
    block: int, other: int, part: int, group: int, vectors: int, tokens: int, result: int
) -> None:
    """Add the products of two tiles with one group to the totals of all tokens."""
    numbers, scales = numbers_of(block, part), scales_of(block, part, common_of(block))
    others, other_scales = numbers_of(other, part), scales_of(other, part, common_of(other))
    x, tail = integers_at(vectors, group, 0, tokens), scale_at(vectors, group, 0, tokens)
    apart, other_result = 4 * tokens, result + TILE_RESULTS_BYTES
    for _ in range(tokens):
        start = start_of(tail, apart)
        dots, other_dots = dots_of_two(numbers, others, x, start)
        total, other_total = load_floats(result), load_floats(other_result)
        store_floats(result, finish(total, dots, scales, tail, apart))
        store_floats(other_result, finish(other_total, other_dots, other_scales, tail, apart))
        x, tail = x + SPLIT_BYTES, tail + 4
        result, other_result = result + 64, other_result + 64


def multiply_one(tile: int, groups: int, vectors: int, result: int) -> None:
    """Multiply a tile of blocks of 32 with the only vector."""
    total = no_floats()
    for group in range(groups):
        block = tile + block_bytes * group
        total = add_part(total, block, 0, common_of(block), vectors, group)
    store_floats(result, total)


def multiply_one_large(tile: int, groups: int, vectors: int, result: int) -> None:
    """Multiply a tile of blocks of 256 with the only vector.

    The eight parts are written out. Loads stay in order: the processor fetches memory ahead of a
    loop only if it goes on in one direction.
    """
    total = no_floats()
    for group in range(0, groups, 8):
        block = tile + block_bytes * (group // 8)
        common = common_of(block)
        total = add_part(total, block, 0, common, vectors, group)
        total = add_part(total, block, 1, common, vectors, group)
        keep_order()
        total = add_part(total, block, 2, common, vectors, group)
        total = add_part(total, block, 3, common, vectors, group)
        keep_order()
        total = add_part(total, block, 4, common, vectors, group)
        total = add_part(total, block, 5, common, vectors, group)
        keep_order()
        total = add_part(total, block, 6, common, vectors, group)
        total = add_part(total, block, 7, common, vectors, group)
        keep_order()
    store_floats(result, total)


def multiply_numbers(
    tile: int, groups: int, vectors: int, tokens: int, result: int, tiles: int
) -> None:
    """Multiply one or two tiles of whole numbers with the vector of every token.

    A group is unpacked once for all tokens, whose totals wait in memory meanwhile. Two tiles go
    together where the processor has the registers for it.
    """
    tile_bytes = block_bytes * (groups // block_groups)
    if tokens == 1:
        for number in range(tiles):
            found = result + number * TILE_RESULTS_BYTES
            multiply_one(tile + number * tile_bytes, groups, vectors, found)
    elif tiles == 2 and two_together:
        clear(result, tokens)
        clear(result + TILE_RESULTS_BYTES, tokens)
        for group in range(groups):
            block = tile + block_bytes * (group // block_groups)
            other, part = block + tile_bytes, group % block_groups
            add_two_to_all(block, other, part, group, vectors, tokens, result)
    else:
        for number in range(tiles):
            found = result + number * TILE_RESULTS_BYTES
            clear(found, tokens)
            for group in range(groups):
                block = tile + number * tile_bytes + block_bytes * (group // block_groups)
                add_to_all(block, group % block_groups, group, vectors, tokens, found)


two_together = has_wide_registers()


@njit(**INLINED)
def store_four(result: int, t0: Any, t1: Any, t2: Any, t3: Any) -> None:
    """Store the results of four tokens."""
    store_floats(result, t0)
    store_floats(result + 64, t1)
    store_floats(result + 128, t2)
    store_floats(result + 192, t3)


column_of, column_bytes = load_halves, 32


def multiply_floats(
    tile: int, groups: int, vectors: int, tokens: int, result: int, tiles: int
) -> None:
    """Multiply one or two tiles of floats with the vector of every token, even and odd columns
    apart."""
    whole, stride = tokens // 4 * 4, 4 * GROUP * groups
    inputs = floats_at(vectors, groups, 0, tokens)
    for _ in range(tiles):
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
                fetch_ahead(where, 2 * column_bytes)
                a = multiply_add(column_of(where), broadcast_float_at(source + 4 * column), a)
                odd = column_of(where + column_bytes)
                b = multiply_add(odd, broadcast_float_at(source + 4 * column + 4), b)
            store_floats(result + 64 * token, add(a, b))
        tile, result = tile + GROUP * groups * column_bytes, result + TILE_RESULTS_BYTES


NUMBERS: dict[str, tuple[Any, Any, Way]] = {
    "Q4_0": (of.q4_0_numbers, of.q4_0_scales, _offset(8)),
    "Q4_1": (of.q4_1_numbers, of.q4_1_scales, MINIMUM),
    "Q5_0": (of.q5_0_numbers, of.q5_0_scales, _offset(16)),
    "Q5_1": (of.q5_1_numbers, of.q5_1_scales, MINIMUM),
    "Q8_0": (of.q8_0_numbers, of.q8_0_scales, _offset(128)),
    "Q2_K": (of.q2_k_numbers, of.q2_k_scales, HALF_MINIMA),
    "Q3_K": (of.q3_k_numbers, of.q3_k_scales, _half_offsets(4)),
    "Q4_K": (of.q4_k_numbers, of.q4_k_scales, MINIMUM),
    "Q5_K": (of.q5_k_numbers, of.q5_k_scales, MINIMUM),
    "Q6_K": (of.q6_k_numbers, of.q6_k_scales, _half_offsets(32)),
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
    f(tile, groups, vectors, tokens, result, tiles)."""
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
    common = COMMON.get(kind, of.nothing_common)
    names: dict[str, Any] = {
        "numbers_of": numbers, "scales_of": scales, "common_of": common,
        "start_of": way.start, "dots_of": way.dots, "dots_of_two": way.dots_of_two,
        "finish": way.finish, "block_bytes": TILE * layout.bytes,
        "block_groups": layout.length // GROUP,
    }  # fmt: skip
    one = multiply_one if layout.length == GROUP else multiply_one_large
    for inner, template in (
        ("add_part", add_part), ("multiply_one", one), ("add_to_all", add_to_all),
        ("add_two_to_all", add_two_to_all),
    ):  # fmt: skip
        copy = bound(template, f"{name}_{template.__name__}", **names)
        names[inner] = njit(**INLINED)(copy)
    return bound(multiply_numbers, name, **names)


@part
def multiply_tiles(
    matrix_address: int, tile: int, tiles: int, vectors: int, tokens: int, result: int
) -> None:
    """Multiply 16 rows, or two times 16, with the vector of every token: 16 results for each
    token, in order; the second tile's are TILE_RESULTS_BYTES later."""
    matrix = matrix_at(matrix_address)
    weights = matrix.weights + tile * matrix.tile_bytes
    call_with_six(matrix.multiply, weights, matrix.groups, vectors, tokens, result, tiles)
