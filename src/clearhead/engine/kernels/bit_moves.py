"""Blocks of 256 numbers: which bit of a file's block goes where in a tile.

A file keeps the bits of a number far apart (Q6_K: four bits here, two there), and one byte holds
bits of numbers that lie up to 224 columns apart. A product would read the block several times and
back and forth. In a tile the 32 numbers of a part follow one another, in as few words as they have
bits, so that a product reads on in one direction and needs few operations to take them apart. It is
the same number of bits, and every bit moves, so nothing is lost.

A word of a part holds columns 4j … 4j + 3 in its four bytes. Number j is the j-th such column of
four, 0 … 7; its bits are spread over the words of the part by ``PLACES``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

Bit = tuple[int, int]  # the byte at which a word starts, or the number of a word; the bit in it
Number = Callable[[int, int, int], Bit]  # part, number, its bit → where the file has it

PARTS, NUMBERS, COLUMNS = 8, 8, 4


# Where a tile has bit b of number j: word of the part, bit of each of its bytes.
def _two_bits(j: int, b: int) -> Bit:
    return j // 4, 2 * (j % 4) + b


def _three_bits(j: int, b: int) -> Bit:
    """Two numbers to a byte; numbers 6 and 7 have the upper two bits of the three words."""
    if j < 6:
        return j // 2, 3 * (j % 2) + b
    place = 3 * (j - 6) + b
    return place // 2, 6 + place % 2


def _four_bits(j: int, b: int) -> Bit:
    return j % 4, 4 * (j // 4) + b


def _five_bits(j: int, b: int) -> Bit:
    """One number to a byte; numbers 5, 6 and 7 have the upper three bits of the five words."""
    if j < 5:
        return j, b
    spare = {5: (0, 0, 0, 1, 1), 6: (2, 2, 2, 3, 3), 7: (4, 4, 4, 1, 3)}[j]
    above = {5: (5, 6, 7, 5, 6), 6: (5, 6, 7, 5, 6), 7: (5, 6, 7, 7, 7)}[j]
    return spare[b], above[b]


def _six_bits(j: int, b: int) -> Bit:
    """One number to a byte; numbers 3 and 7 have the upper two bits of three words each."""
    if j % 4 < 3:
        return 3 * (j // 4) + j % 4, b
    return 3 * (j // 4) + b // 2, 6 + b % 2


PLACES = {2: _two_bits, 3: _three_bits, 4: _four_bits, 5: _five_bits, 6: _six_bits}


# Where a file has bit b of number j of a part: byte of the block, bit of each of four bytes.
def _q2_k(part: int, j: int, b: int) -> Bit:
    return 16 + 32 * (part // 4) + 4 * j, 2 * (part % 4) + b


def _q3_k(part: int, j: int, b: int) -> Bit:
    return (32 + 32 * (part // 4) + 4 * j, 2 * (part % 4) + b) if b < 2 else (4 * j, part)


def _q4_k(part: int, j: int, b: int) -> Bit:
    return 16 + 32 * (part // 2) + 4 * j, 4 * (part % 2) + b


def _q5_k(part: int, j: int, b: int) -> Bit:
    return (48 + 32 * (part // 2) + 4 * j, 4 * (part % 2) + b) if b < 4 else (16 + 4 * j, part)


def _q6_k(part: int, j: int, b: int) -> Bit:
    half, quarter = divmod(part, 4)
    if b < 4:
        return 64 * half + 32 * (quarter % 2) + 4 * j, 4 * (quarter // 2) + b
    return 128 + 32 * half + 4 * j, 2 * quarter + b - 4


def number_bits(bits: int, source: Number) -> Iterator[tuple[Bit, Bit]]:
    """Bit of a word of the tile, bit of the file's block: for all numbers of a block."""
    for part in range(PARTS):
        for j in range(NUMBERS):
            for b in range(bits):
                (word, place), (start, stored) = PLACES[bits](j, b), source(part, j, b)
                for byte in range(COLUMNS):
                    yield (part * bits + word, 8 * byte + place), (start, 8 * byte + stored)


# Sixteen numbers of six bits in three words: five to a word, the last in the upper bits of all.
def six_bit_place(index: int, b: int) -> Bit:
    """Where a tile has bit b of one of the sixteen."""
    return (index // 5, 6 * (index % 5) + b) if index < 15 else (b // 2, 30 + b % 2)


def _scale_or_minimum(index: int, b: int) -> tuple[int, int]:
    """Q4_K, Q5_K: byte and bit of scale (even) and minimum (odd) of a part, out of twelve bytes."""
    part, which = divmod(index, 2)
    if part < 4:
        return 4 * which + part, b
    return (4 + part, 4 * which + b) if b < 4 else (4 * which + part - 4, 2 + b)


def _q3_k_scale(index: int, b: int) -> tuple[int, int]:
    """Q3_K: byte and bit of a scale, out of twelve bytes."""
    return (index % 8, 4 * (index // 8) + b) if b < 4 else (8 + index % 4, 2 * (index // 4) + b - 4)


def scale_bits(
    start: int, source: Callable[[int, int], tuple[int, int]]
) -> Iterator[tuple[Bit, Bit]]:
    """The same for sixteen numbers of six bits, which begin at byte ``start`` of the block."""
    for index in range(16):
        for b in range(6):
            byte, bit = source(index, b)
            yield six_bit_place(index, b), (start + byte // 4 * 4, 8 * (byte % 4) + bit)


def _after(words: int, bits: Iterator[tuple[Bit, Bit]]) -> Iterator[tuple[Bit, Bit]]:
    return (((word + words, place), stored) for (word, place), stored in bits)


def _as_they_are(start: int, words: int) -> Iterator[tuple[Bit, Bit]]:
    return (((word, bit), (start + 4 * word, bit)) for word in range(words) for bit in range(32))


def moves(kind: str) -> dict[Bit, Bit]:
    """Each bit of the words of a block: (word, bit) in the tile, (byte, bit) in the file."""
    numbers = {
        "Q2_K": (2, _q2_k), "Q3_K": (3, _q3_k), "Q4_K": (4, _q4_k), "Q5_K": (5, _q5_k),
        "Q6_K": (6, _q6_k),
    }  # fmt: skip
    scales = {
        "Q2_K": (4, _as_they_are(0, 4)),
        "Q3_K": (3, scale_bits(96, _q3_k_scale)),
        "Q4_K": (3, scale_bits(4, _scale_or_minimum)),
        "Q5_K": (3, scale_bits(4, _scale_or_minimum)),
        "Q6_K": (4, _as_they_are(192, 4)),
    }
    words, found = scales[kind]
    return dict(found) | dict(_after(words, number_bits(*numbers[kind])))
