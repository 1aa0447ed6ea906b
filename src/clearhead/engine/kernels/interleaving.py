"""Blocks of 16 rows into a tile, and one row of a tile back into blocks (see layouts.py)."""
# numba's decorators have no types, and only LLVM knows the type of a vector.
# mypy: disable-error-code="untyped-decorator, no-any-return"

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from clearhead.engine.kernels.layouts import PLUS_128, SPREAD_BITS, TOGETHER
from clearhead.engine.kernels.parts import interleave_at
from clearhead.engine.kernels.structures import TILE
from clearhead.engine.kernels.threads import thread_count, thread_number
from clearhead.kernels.compiling import INLINED
from clearhead.kernels.memory import (
    integer_at,
    load_ints,
    put_short,
    put_word,
    short_at,
    store_ints,
    word_at,
)
from clearhead.kernels.vectors import either, masked, no_ints, shifted_left, shifted_right

FLIPPED = 0x80808080  # the upper bit of four bytes: plus 128


@njit(**INLINED)
def spread(word: int) -> int:
    """32 bits: that of column 4j + b becomes bit j of byte b."""
    found = 0
    for place in range(32):
        found |= (word >> place & 1) << (8 * (place % 4) + place // 4)
    return found


@njit(**INLINED)
def gathered(word: int) -> int:
    """Undo ``spread``."""
    found = 0
    for place in range(32):
        found |= (word >> (8 * (place % 4) + place // 4) & 1) << place
    return found


@njit(**INLINED)
def moved_back(word: int, term: int) -> int:
    """The bits of a tile's word where the file's word has them."""
    return (word & integer_at(term + 16)) << integer_at(term + 8) + 32 >> 32


@njit(**INLINED)
def put_simple(task: Any, tile: int, piece: int, offset: int, target: int) -> None:
    """Put the pieces at a byte of 16 rows side by side; none of the rows is missing."""
    order = task.order + 8 * TILE * tile
    source, change = task.source + offset, integer_at(piece + 8)
    if integer_at(piece) == 2:
        for lane in range(TILE):
            row = integer_at(order + 8 * lane)
            put_short(target + 2 * lane, short_at(source + row * task.row_bytes))
    elif change == SPREAD_BITS:
        for lane in range(TILE):
            row = integer_at(order + 8 * lane)
            put_word(target + 4 * lane, spread(word_at(source + row * task.row_bytes)))
    else:
        flipped = FLIPPED if change == PLUS_128 else 0
        for lane in range(TILE):
            row = integer_at(order + 8 * lane)
            put_word(target + 4 * lane, word_at(source + row * task.row_bytes) ^ flipped)


@njit(**INLINED)
def put_some(task: Any, tile: int, piece: int, offset: int, target: int) -> None:
    """The same with zeros for rows −1 and beyond the end of a row."""
    size, change = integer_at(piece), integer_at(piece + 8)
    for lane in range(TILE):
        row = integer_at(task.order + 8 * (TILE * tile + lane))
        there = row >= 0 and offset < task.row_bytes
        source = task.source + row * task.row_bytes + offset
        if size == 2:
            put_short(target + 2 * lane, short_at(source) if there else 0)
        else:
            word = word_at(source) if there else 0
            word = spread(word) if change == SPREAD_BITS else word
            put_word(target + 4 * lane, word ^ (FLIPPED if change == PLUS_128 else 0))


@njit(**INLINED)
def gather_words(task: Any, tile: int, offset: int, scratch: int) -> None:
    """Put all words of a block side by side as they are, with zeros for rows −1."""
    for lane in range(TILE):
        row = integer_at(task.order + 8 * (TILE * tile + lane))
        source = task.source + row * task.row_bytes + offset
        for place in range(0, task.block_bytes - 3, 4):
            put_word(scratch + TILE * place + 4 * lane, word_at(source + place) if row >= 0 else 0)


@njit(**INLINED)
def put_together(piece: int, scratch: int, target: int) -> None:
    """Put together a word of 16 rows, term by term, out of the words of their blocks."""
    found = no_ints()
    for number in range(integer_at(piece + 16)):
        term = piece + 24 + 24 * number
        words, shift = load_ints(scratch + TILE * integer_at(term)), integer_at(term + 8)
        words = shifted_right(words, shift) if shift >= 0 else shifted_left(words, -shift)
        found = either(found, masked(words, integer_at(term + 16)))
    store_ints(target, found)


@njit(**INLINED)
def interleave_tile(task: Any, tile: int, scratch: int) -> None:
    """Fill one tile; rows −1 are zeros."""
    target = task.target + tile * TILE * task.block_bytes * task.blocks
    whole = task.row_bytes >= task.blocks * task.block_bytes
    for lane in range(TILE):
        whole = whole and integer_at(task.order + 8 * (TILE * tile + lane)) >= 0
    for block in range(task.blocks):
        piece, offset = task.pieces + 8, block * task.block_bytes
        if scratch != 0:
            gather_words(task, tile, offset, scratch)
        for _ in range(integer_at(task.pieces)):
            if integer_at(piece + 8) == TOGETHER:
                put_together(piece, scratch, target)
            elif whole:
                put_simple(task, tile, piece, offset + integer_at(piece + 24), target)
            else:
                put_some(task, tile, piece, offset + integer_at(piece + 24), target)
            target += TILE * integer_at(piece)
            piece += 24 + 24 * integer_at(piece + 16)


def interleave(task_address: int) -> None:
    """Fill this thread's share of the tiles."""
    task = interleave_at(task_address)
    thread, threads = np.int64(thread_number()), np.int64(thread_count())
    scratch = task.scratch + thread * TILE * task.block_bytes if task.scratch != 0 else 0
    for tile in range(task.tiles * thread // threads, task.tiles * (thread + 1) // threads):
        interleave_tile(task, tile, scratch)


@njit(**INLINED)
def take_word(piece: int, word: int, target: int) -> None:
    """Put the bits of a tile's word where the file's block has them."""
    change = integer_at(piece + 8)
    if change == PLUS_128:
        word ^= FLIPPED
    elif change == SPREAD_BITS:
        word = gathered(word)
    for number in range(integer_at(piece + 16)):
        term = piece + 24 + 24 * number
        place = target + integer_at(term)
        put_word(place, word_at(place) | moved_back(word, term))


@njit(**INLINED)
def take_row(matrix: Any, row: int, target: int) -> None:
    """Write the blocks of one row of a matrix, as the file has them."""
    source = matrix.weights + row // TILE * matrix.tile_bytes
    lane, blocks = row % TILE, matrix.tile_bytes // (TILE * matrix.block_bytes)
    for place in range(0, blocks * matrix.block_bytes, 2):
        put_short(target + place, 0)
    for block in range(blocks):
        piece = matrix.pieces + 8
        for _ in range(integer_at(matrix.pieces)):
            size, start = integer_at(piece), target + block * matrix.block_bytes
            if size == 2:
                put_short(start + integer_at(piece + 24), short_at(source + 2 * lane))
            else:
                take_word(piece, word_at(source + 4 * lane), start)
            source += TILE * size
            piece += 24 + 24 * integer_at(piece + 16)
