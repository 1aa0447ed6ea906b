"""Blocks of 16 rows into a tile, and one row of a tile back into blocks (see layouts.py)."""
# numba's decorators have no types, and only LLVM knows the type of a vector.
# mypy: disable-error-code="untyped-decorator, no-any-return"

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from clearhead.engine.kernels.layouts import PLUS_128, SPREAD_BITS
from clearhead.engine.kernels.parts import interleave_at
from clearhead.engine.kernels.structures import TILE
from clearhead.engine.kernels.threads import thread_count, thread_number
from clearhead.kernels.compiling import INLINED
from clearhead.kernels.memory import integer_at, put_short, put_word, short_at, word_at


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
def changed(word: int, change: int) -> int:
    """Four bytes as a tile stores them."""
    if change == PLUS_128:
        word ^= 0x80808080
    elif change == SPREAD_BITS:
        word = spread(word)
    return word


@njit(**INLINED)
def put_block(source: int, there: int, target: int, lane: int, fields: int) -> None:
    """Put one block of a row into its lane; only the first ``there`` bytes exist, zeros follow."""
    for number in range(integer_at(fields)):
        field = fields + 8 + 32 * number
        start, size = integer_at(field), integer_at(field + 8)
        count, change = integer_at(field + 16), integer_at(field + 24)
        for piece in range(count):
            place = start + size * piece
            where = target + TILE * place + size * lane
            if size == 2:
                put_short(where, short_at(source + place) if place < there else 0)
            else:
                word = word_at(source + place) if place < there else 0
                put_word(where, changed(word, change))


@njit(**INLINED)
def interleave_tile(task: Any, tile: int) -> None:
    """Fill one tile; rows −1 are zeros."""
    target = task.target + tile * TILE * task.block_bytes * task.blocks
    for block in range(task.blocks):
        start = block * task.block_bytes
        for lane in range(TILE):
            row = integer_at(task.order + 8 * (TILE * tile + lane))
            there = task.row_bytes - start if row >= 0 else 0
            source = task.source + row * task.row_bytes + start
            put_block(source, there, target + TILE * start, lane, task.fields)


def interleave(task_address: int) -> None:
    """Fill this thread's share of the tiles."""
    task = interleave_at(task_address)
    thread, threads = np.int64(thread_number()), np.int64(thread_count())
    for tile in range(task.tiles * thread // threads, task.tiles * (thread + 1) // threads):
        interleave_tile(task, tile)


@njit(**INLINED)
def take_row(matrix: Any, row: int, target: int) -> None:
    """Write the blocks of one row of a matrix, as the file has them."""
    start = matrix.weights + row // TILE * matrix.tile_bytes
    lane, blocks = row % TILE, matrix.tile_bytes // (TILE * matrix.block_bytes)
    for block in range(blocks):
        source = start + block * TILE * matrix.block_bytes
        for number in range(integer_at(matrix.fields)):
            field = matrix.fields + 8 + 32 * number
            size, change = integer_at(field + 8), integer_at(field + 24)
            for piece in range(integer_at(field + 16)):
                place = integer_at(field) + size * piece
                where = source + TILE * place + size * lane
                to = target + block * matrix.block_bytes + place
                if size == 2:
                    put_short(to, short_at(where))
                elif change == SPREAD_BITS:
                    put_word(to, gathered(word_at(where)))
                else:
                    put_word(to, changed(word_at(where), change))
