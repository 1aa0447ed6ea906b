"""One group of a tile, 32 columns of 16 rows: whole numbers from 0 to 255, scales and minima.

``…_numbers`` gives eight vectors, columns 4j … 4j + 3 of every row in the four bytes of a lane of
vector j. ``…_scales`` gives two vectors of floats. ``block`` is the address of a block of 16 rows
(see layouts.py); a block of 256 has parts 0 … 7, and half-precision numbers that they have in
``common``.
"""
# numba's decorators have no types, and only LLVM knows the type of a vector.
# mypy: disable-error-code="untyped-decorator, no-any-return"

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from clearhead.kernels.compiling import INLINED
from clearhead.kernels.memory import keep_order, load_halves, load_ints
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
THREE, FIVE, SIX = 0x07070707, 0x1F1F1F1F, 0x3F3F3F3F  # so many bits of each byte
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
def bits(vector: Any, shift: int, mask: int) -> Any:
    """Some bits of every byte, moved down."""
    return masked(shifted_right(vector, shift), mask)


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
def q4_0_numbers(block: int, _part: int) -> Any:
    """Scale, 16 bytes."""
    return sixteen_nibbles(block + ROW * 2)


@njit(**INLINED)
def q4_0_scales(block: int, _part: int, _common: Any) -> Any:
    """A scale and no minimum."""
    return load_halves(block), no_floats()


@njit(**INLINED)
def q4_1_numbers(block: int, _part: int) -> Any:
    """Scale, minimum, 16 bytes."""
    return sixteen_nibbles(block + ROW * 4)


@njit(**INLINED)
def q4_1_scales(block: int, _part: int, _common: Any) -> Any:
    """Scale and minimum."""
    return load_halves(block), load_halves(block + ROW * 2)


@njit(**INLINED)
def q5_0_numbers(block: int, _part: int) -> Any:
    """Scale, fifth bits, 16 bytes."""
    return with_upper(sixteen_nibbles(block + ROW * 6), spread_bits(block + ROW * 2), 4)


@njit(**INLINED)
def q5_0_scales(block: int, _part: int, _common: Any) -> Any:
    """A scale and no minimum."""
    return load_halves(block), no_floats()


@njit(**INLINED)
def q5_1_numbers(block: int, _part: int) -> Any:
    """Scale, minimum, fifth bits, 16 bytes."""
    return with_upper(sixteen_nibbles(block + ROW * 8), spread_bits(block + ROW * 4), 4)


@njit(**INLINED)
def q5_1_scales(block: int, _part: int, _common: Any) -> Any:
    """Scale and minimum."""
    return load_halves(block), load_halves(block + ROW * 2)


@njit(**INLINED)
def q8_0_numbers(block: int, _part: int) -> Any:
    """Scale, 32 bytes, stored plus 128."""
    where = block + ROW * 2
    return (
        load_ints(where), load_ints(where + 64), load_ints(where + 128), load_ints(where + 192),
        load_ints(where + 256), load_ints(where + 320), load_ints(where + 384),
        load_ints(where + 448),
    )  # fmt: skip


@njit(**INLINED)
def q8_0_scales(block: int, _part: int, _common: Any) -> Any:
    """A scale and no minimum."""
    return load_halves(block), no_floats()


# Blocks of 256 in eight parts of 32, whose bits are those of bit_moves.py.
@njit(**INLINED)
def nothing_common(_block: int) -> Any:
    """A block of 32 has one part."""
    return no_floats(), no_floats()


@njit(**INLINED)
def scale_in_common(block: int) -> Any:
    """One scale, for both halves of a part."""
    scale = load_halves(block)
    return scale, scale


@njit(**INLINED)
def scale_and_minimum_in_common(block: int) -> Any:
    """A scale, and a minimum that is subtracted."""
    return load_halves(block), subtract(no_floats(), load_halves(block + ROW * 2))


@njit(**INLINED)
def scale_and_minimum_over_128(block: int) -> Any:
    """A scale, and what −128·Σ is multiplied with."""
    return load_halves(block), multiply(load_halves(block + ROW * 2), broadcast(OVER_128))


@njit(**INLINED)
def six_bits(words: int, index: int) -> Any:
    """One of sixteen numbers of six bits in three words."""
    if index == 15:
        first, second = load_ints(words), load_ints(words + 64)
        rest = masked(shifted_right(load_ints(words + 128), 26), 48)
        both = either(shifted_right(first, 30), masked(shifted_right(second, 28), 12))
        return as_floats(either(both, rest))
    word = load_ints(words + 64 * (index // 5))
    return as_floats(masked(shifted_right(word, 6 * (index % 5)), 63))


@njit(**INLINED)
def scale_and_minimum(block: int, part: int, common: Any) -> Any:
    """Scale and minimum of a part of a Q4_K or Q5_K block."""
    words = block + ROW * 4
    scale = multiply(common[0], six_bits(words, 2 * part))
    return scale, multiply(common[1], six_bits(words, 2 * part + 1))


@njit(**INLINED)
def q4_k_numbers(block: int, part: int) -> Any:
    """Scale, minimum, 3 words of scales and minima, then 4 words of each part."""
    return sixteen_nibbles(block + ROW * (16 + 16 * part))


@njit(**INLINED)
def q4_k_scales(block: int, part: int, common: Any) -> Any:
    """Scale and minimum."""
    return scale_and_minimum(block, part, common)


@njit(**INLINED)
def q5_k_numbers(block: int, part: int) -> Any:
    """Scale, minimum, 3 words of scales and minima, then 5 words of each part."""
    where = block + ROW * (16 + 20 * part)
    a, b, c = load_ints(where), load_ints(where + 64), load_ints(where + 128)
    d, e = load_ints(where + 192), load_ints(where + 256)
    fifth = either(bits(a, 5, 0x07070707), bits(b, 2, 0x18181818))
    sixth = either(bits(c, 5, 0x07070707), bits(d, 2, 0x18181818))
    seventh = either(bits(b, 4, 0x08080808), bits(d, 3, 0x10101010))
    seventh = either(bits(e, 5, 0x07070707), seventh)
    return (
        masked(a, FIVE), masked(b, FIVE), masked(c, FIVE), masked(d, FIVE), masked(e, FIVE),
        fifth, sixth, seventh,
    )  # fmt: skip


@njit(**INLINED)
def q5_k_scales(block: int, part: int, common: Any) -> Any:
    """Scale and minimum."""
    return scale_and_minimum(block, part, common)


# With two scales to a part, one for each 16 columns.
@njit(**INLINED)
def three_words(where: int) -> Any:
    """Four vectors of six bits out of three: the last has the upper two bits of all."""
    a, b, c = load_ints(where), load_ints(where + 64), load_ints(where + 128)
    last = either(bits(a, 6, QUARTERS), bits(b, 4, 0x0C0C0C0C))
    last = either(last, bits(c, 2, 0x30303030))
    return masked(a, SIX), masked(b, SIX), masked(c, SIX), last


@njit(**INLINED)
def q6_k_numbers(block: int, part: int) -> Any:
    """Scale of all, 16 scales, then 6 words of each part."""
    where = block + ROW * (18 + 24 * part)
    first, second = three_words(where), three_words(where + 192)
    keep_order()  # LLVM would load words of the next part before these
    return (
        first[0], first[1], first[2], first[3], second[0], second[1], second[2], second[3],
    )  # fmt: skip


@njit(**INLINED)
def q6_k_scales(block: int, part: int, common: Any) -> Any:
    """Scales of columns 0 … 15 and 16 … 31."""
    words, scale = load_ints(block + ROW * (2 + 4 * (part // 2))), common[0]
    first = divided_by_power(shifted_left(words, 24 - 16 * (part % 2)), 24)
    second = divided_by_power(shifted_left(words, 16 - 16 * (part % 2)), 24)
    return multiply(scale, as_floats(first)), multiply(scale, as_floats(second))


@njit(**INLINED)
def q3_k_numbers(block: int, part: int) -> Any:
    """Scale of all, 3 words of scales, then 3 words of each part."""
    where = block + ROW * (14 + 12 * part)
    a, b, c = load_ints(where), load_ints(where + 64), load_ints(where + 128)
    sixth = either(bits(a, 6, QUARTERS), bits(b, 4, 0x04040404))
    seventh = either(bits(b, 7, SINGLE), bits(c, 5, 0x06060606))
    return (
        masked(a, THREE), bits(a, 3, THREE), masked(b, THREE), bits(b, 3, THREE),
        masked(c, THREE), bits(c, 3, THREE), sixth, seventh,
    )  # fmt: skip


@njit(**INLINED)
def q3_k_scales(block: int, part: int, common: Any) -> Any:
    """Scales of columns 0 … 15 and 16 … 31: six bits, less 32."""
    words, offset = block + ROW * 2, broadcast(np.float32(32))
    first = subtract(six_bits(words, 2 * part), offset)
    second = subtract(six_bits(words, 2 * part + 1), offset)
    return multiply(common[0], first), multiply(common[0], second)


@njit(**INLINED)
def q2_k_numbers(block: int, part: int) -> Any:
    """Scale and minimum of all, 16 bytes of scales and minima, then 2 words of each part."""
    where = block + ROW * (20 + 8 * part)
    a, b = load_ints(where), load_ints(where + 64)
    return (
        masked(a, QUARTERS), bits(a, 2, QUARTERS), bits(a, 4, QUARTERS), bits(a, 6, QUARTERS),
        masked(b, QUARTERS), bits(b, 2, QUARTERS), bits(b, 4, QUARTERS), bits(b, 6, QUARTERS),
    )  # fmt: skip


@njit(**INLINED)
def q2_k_part(block: int, index: int, which: int, common: Any) -> Any:
    """Scale (``which`` 0) or minimum (1) of half a part, 0 … 15."""
    words = load_ints(block + ROW * 4 + 64 * (index // 4))
    number = masked(shifted_right(words, 8 * (index % 4) + 4 * which), 15)
    return multiply(common[which], as_floats(number))


@njit(**INLINED)
def q2_k_scales(block: int, part: int, common: Any) -> Any:
    """Scales of columns 0 … 15 and 16 … 31, then what −128·Σ of each is multiplied with."""
    return (
        q2_k_part(block, 2 * part, 0, common), q2_k_part(block, 2 * part + 1, 0, common),
        q2_k_part(block, 2 * part, 1, common), q2_k_part(block, 2 * part + 1, 1, common),
    )  # fmt: skip
