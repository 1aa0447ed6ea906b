"""One group of a tile, 32 columns of 16 rows: whole numbers from 0 to 255, scales and minima.

``…_numbers`` gives eight vectors, columns 4j … 4j + 3 of every row in the four bytes of a lane of
vector j. ``…_scales`` gives two vectors of floats. Group g of a kind with blocks of 256 is part
g % 8 of block g // 8; a block's bytes are those of its file, 16 rows at a time (see layouts.py).
"""
# numba's decorators have no types, and only LLVM knows the type of a vector.
# mypy: disable-error-code="untyped-decorator, no-any-return"

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from clearhead.kernels.compiling import INLINED
from clearhead.kernels.memory import load_halves, load_ints
from clearhead.kernels.vectors import (
    as_floats,
    broadcast,
    divided_by_power,
    either,
    masked,
    multiply,
    no_floats,
    shifted_left,
    shifted_right,
    subtract,
)

NIBBLES, QUARTERS, SINGLE = 0x0F0F0F0F, 0x03030303, 0x01010101
ROW = 16  # a byte of a block is so many bytes of a tile
OVER_128 = np.float32(1 / 128)


@njit(**INLINED)
def low(vector: Any) -> Any:
    """The lower four bits of every byte."""
    return masked(vector, NIBBLES)


@njit(**INLINED)
def high(vector: Any) -> Any:
    """The upper four bits of every byte."""
    return masked(shifted_right(vector, 4), NIBBLES)


@njit(**INLINED)
def sixteen_nibbles(where: int) -> Any:
    """16 bytes of each row: lower halves are columns 0 … 15, upper halves 16 … 31."""
    a, b = load_ints(where), load_ints(where + 64)
    c, d = load_ints(where + 128), load_ints(where + 192)
    return low(a), low(b), low(c), low(d), high(a), high(b), high(c), high(d)


@njit(**INLINED)
def bits_at(where: int, shift: int, bits: int) -> Any:
    """32 bytes of each row: some bits of each byte."""
    return (
        masked(shifted_right(load_ints(where), shift), bits),
        masked(shifted_right(load_ints(where + 64), shift), bits),
        masked(shifted_right(load_ints(where + 128), shift), bits),
        masked(shifted_right(load_ints(where + 192), shift), bits),
        masked(shifted_right(load_ints(where + 256), shift), bits),
        masked(shifted_right(load_ints(where + 320), shift), bits),
        masked(shifted_right(load_ints(where + 384), shift), bits),
        masked(shifted_right(load_ints(where + 448), shift), bits),
    )


@njit(**INLINED)
def with_upper(numbers: Any, upper: Any, shift: int) -> Any:
    """Numbers with more bits above them."""
    return (
        either(numbers[0], shifted_left(upper[0], shift)),
        either(numbers[1], shifted_left(upper[1], shift)),
        either(numbers[2], shifted_left(upper[2], shift)),
        either(numbers[3], shifted_left(upper[3], shift)),
        either(numbers[4], shifted_left(upper[4], shift)),
        either(numbers[5], shifted_left(upper[5], shift)),
        either(numbers[6], shifted_left(upper[6], shift)),
        either(numbers[7], shifted_left(upper[7], shift)),
    )


@njit(**INLINED)
def spread_bits(where: int) -> Any:
    """The 32 single bits of each row, reordered when they were packed."""
    word = load_ints(where)
    return (
        masked(word, SINGLE), masked(shifted_right(word, 1), SINGLE),
        masked(shifted_right(word, 2), SINGLE), masked(shifted_right(word, 3), SINGLE),
        masked(shifted_right(word, 4), SINGLE), masked(shifted_right(word, 5), SINGLE),
        masked(shifted_right(word, 6), SINGLE), masked(shifted_right(word, 7), SINGLE),
    )  # fmt: skip


# Blocks of 32.
@njit(**INLINED)
def q4_0_numbers(tile: int, group: int) -> Any:
    """Scale, 16 bytes."""
    return sixteen_nibbles(tile + ROW * (18 * group + 2))


@njit(**INLINED)
def q4_0_scales(tile: int, group: int) -> Any:
    """A scale and no minimum."""
    return load_halves(tile + ROW * 18 * group), no_floats()


@njit(**INLINED)
def q4_1_numbers(tile: int, group: int) -> Any:
    """Scale, minimum, 16 bytes."""
    return sixteen_nibbles(tile + ROW * (20 * group + 4))


@njit(**INLINED)
def q4_1_scales(tile: int, group: int) -> Any:
    """Scale and minimum."""
    block = tile + ROW * 20 * group
    return load_halves(block), load_halves(block + ROW * 2)


@njit(**INLINED)
def q5_0_numbers(tile: int, group: int) -> Any:
    """Scale, fifth bits, 16 bytes."""
    block = tile + ROW * 22 * group
    return with_upper(sixteen_nibbles(block + ROW * 6), spread_bits(block + ROW * 2), 4)


@njit(**INLINED)
def q5_0_scales(tile: int, group: int) -> Any:
    """A scale and no minimum."""
    return load_halves(tile + ROW * 22 * group), no_floats()


@njit(**INLINED)
def q5_1_numbers(tile: int, group: int) -> Any:
    """Scale, minimum, fifth bits, 16 bytes."""
    block = tile + ROW * 24 * group
    return with_upper(sixteen_nibbles(block + ROW * 8), spread_bits(block + ROW * 4), 4)


@njit(**INLINED)
def q5_1_scales(tile: int, group: int) -> Any:
    """Scale and minimum."""
    block = tile + ROW * 24 * group
    return load_halves(block), load_halves(block + ROW * 2)


@njit(**INLINED)
def q8_0_numbers(tile: int, group: int) -> Any:
    """Scale, 32 bytes, stored plus 128."""
    where = tile + ROW * (34 * group + 2)
    return (
        load_ints(where), load_ints(where + 64), load_ints(where + 128), load_ints(where + 192),
        load_ints(where + 256), load_ints(where + 320), load_ints(where + 384),
        load_ints(where + 448),
    )  # fmt: skip


@njit(**INLINED)
def q8_0_scales(tile: int, group: int) -> Any:
    """A scale and no minimum."""
    return load_halves(tile + ROW * 34 * group), no_floats()


# Blocks of 256 in eight parts of 32, each with a scale and a minimum of six bits.
@njit(**INLINED)
def six_bits(words: int, part: int, which: int) -> Any:
    """Scale (``which`` 0) or minimum (1) of a part, out of twelve bytes of each row."""
    own = load_ints(words + 64 * which)
    if part < 4:
        return as_floats(masked(shifted_right(own, 8 * part), 63))
    shift = 8 * (part - 4)
    upper = shifted_left(masked(shifted_right(own, shift + 6), 3), 4)
    rest = masked(shifted_right(load_ints(words + 128), shift + 4 * which), 15)
    return as_floats(either(rest, upper))


@njit(**INLINED)
def scale_and_minimum(block: int, part: int) -> Any:
    """Scale and minimum of a part of a Q4_K or Q5_K block."""
    scale = multiply(load_halves(block), six_bits(block + ROW * 4, part, 0))
    minimum = multiply(load_halves(block + ROW * 2), six_bits(block + ROW * 4, part, 1))
    return scale, subtract(no_floats(), minimum)


@njit(**INLINED)
def q4_k_numbers(tile: int, group: int) -> Any:
    """Scale, minimum, 12 bytes of scales and minima, 128 bytes."""
    part = group % 8
    where = tile + ROW * (144 * (group // 8) + 16 + 32 * (part // 2))
    return bits_at(where, 4 * (part % 2), NIBBLES)


@njit(**INLINED)
def q4_k_scales(tile: int, group: int) -> Any:
    """Scale and minimum."""
    return scale_and_minimum(tile + ROW * 144 * (group // 8), group % 8)


@njit(**INLINED)
def q5_k_numbers(tile: int, group: int) -> Any:
    """Scale, minimum, 12 bytes of scales and minima, 32 bytes of fifth bits, 128 bytes."""
    part, block = group % 8, tile + ROW * 176 * (group // 8)
    numbers = bits_at(block + ROW * (48 + 32 * (part // 2)), 4 * (part % 2), NIBBLES)
    return with_upper(numbers, bits_at(block + ROW * 16, part, SINGLE), 4)


@njit(**INLINED)
def q5_k_scales(tile: int, group: int) -> Any:
    """Scale and minimum."""
    return scale_and_minimum(tile + ROW * 176 * (group // 8), group % 8)


# Blocks of 256 in sixteen parts of 16: two scales to a group.
@njit(**INLINED)
def q6_k_numbers(tile: int, group: int) -> Any:
    """128 bytes, 64 bytes of upper bits, 16 scales, scale of all."""
    block, half, quarter = tile + ROW * 210 * (group // 8), group % 8 // 4, group % 4
    lower = block + ROW * (64 * half + 32 * (quarter % 2))
    numbers = bits_at(lower, 4 * (quarter // 2), NIBBLES)
    upper = bits_at(block + ROW * (128 + 32 * half), 2 * quarter, QUARTERS)
    return with_upper(numbers, upper, 4)


@njit(**INLINED)
def q6_k_scales(tile: int, group: int) -> Any:
    """Scales of columns 0 … 15 and 16 … 31."""
    block, part = tile + ROW * 210 * (group // 8), group % 8
    words, scale = load_ints(block + ROW * (192 + 4 * (part // 2))), load_halves(block + ROW * 208)
    first = divided_by_power(shifted_left(words, 24 - 16 * (part % 2)), 24)
    second = divided_by_power(shifted_left(words, 16 - 16 * (part % 2)), 24)
    return multiply(scale, as_floats(first)), multiply(scale, as_floats(second))


@njit(**INLINED)
def q3_k_numbers(tile: int, group: int) -> Any:
    """32 bytes of third bits, 64 bytes, 12 bytes of scales, scale of all."""
    block, part = tile + ROW * 110 * (group // 8), group % 8
    numbers = bits_at(block + ROW * (32 + 32 * (part // 4)), 2 * (part % 4), QUARTERS)
    return with_upper(numbers, bits_at(block, part, SINGLE), 2)


@njit(**INLINED)
def q3_k_scale(block: int, index: int) -> Any:
    """Scale 0 … 15: four bits out of eight bytes, two more out of the next four, less 32."""
    words = block + ROW * 96
    lower = shifted_right(
        load_ints(words + 64 * (index % 8 // 4)), 8 * (index % 4) + index // 8 * 4
    )
    upper = shifted_right(load_ints(words + 128), 8 * (index % 4) + index // 4 * 2)
    both = either(masked(lower, 15), shifted_left(masked(upper, 3), 4))
    number = subtract(as_floats(both), broadcast(np.float32(32)))
    return multiply(load_halves(block + ROW * 108), number)


@njit(**INLINED)
def q3_k_scales(tile: int, group: int) -> Any:
    """Scales of columns 0 … 15 and 16 … 31."""
    block, part = tile + ROW * 110 * (group // 8), group % 8
    return q3_k_scale(block, 2 * part), q3_k_scale(block, 2 * part + 1)


@njit(**INLINED)
def q2_k_numbers(tile: int, group: int) -> Any:
    """16 bytes of scales and minima, 64 bytes, scale and minimum of all."""
    block, part = tile + ROW * 84 * (group // 8), group % 8
    return bits_at(block + ROW * (16 + 32 * (part // 4)), 2 * (part % 4), QUARTERS)


@njit(**INLINED)
def q2_k_part(block: int, index: int, which: int) -> Any:
    """Scale (``which`` 0) or minimum (1) of part 0 … 15."""
    words = shifted_right(load_ints(block + 64 * (index // 4)), 8 * (index % 4) + 4 * which)
    return multiply(load_halves(block + ROW * (80 + 2 * which)), as_floats(masked(words, 15)))


@njit(**INLINED)
def q2_k_scales(tile: int, group: int) -> Any:
    """Scales of columns 0 … 15 and 16 … 31, then what −128·Σ of each is multiplied with."""
    block, part = tile + ROW * 84 * (group // 8), group % 8
    return (
        q2_k_part(block, 2 * part, 0), q2_k_part(block, 2 * part + 1, 0),
        multiply(q2_k_part(block, 2 * part, 1), broadcast(OVER_128)),
        multiply(q2_k_part(block, 2 * part + 1, 1), broadcast(OVER_128)),
    )  # fmt: skip
