"""Float32 matrices to the engine's tiles (see engine_matrix_kernel.py), on torch's threads."""
# numba's decorators have no types, and what its vectors are is known to LLVM alone.
# mypy: disable-error-code="untyped-decorator, no-any-return"

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from clearhead.attention.addresses_kernel import (
    byte_at,
    half_at,
    load_floats,
    put_byte,
    put_half,
    store_ints,
)
from clearhead.attention.compiled_kernel import INLINED
from clearhead.attention.vectors_kernel import (
    as_ints,
    larger,
    largest_of,
    minus,
    multiply_add,
    rounded,
    size_of,
    spread,
    times,
)
from clearhead.generation.engine_matrix_kernel import BYTES_4, BYTES_8
from clearhead.generation.engine_numbers_kernel import ZERO
from clearhead.generation.engine_parts_kernel import pack_at
from clearhead.generation.engine_structures import GROUP, TILE
from clearhead.generation.engine_threads_kernel import thread_count, thread_number

LEVELS_4, LEVELS_8 = np.float32(15), np.float32(127)
# Numbers that were made of 16 levels differ from them by roundings only, a few times 2⁻²⁴.
ROUNDINGS = np.float32(1e-6)


@njit(**INLINED)
def largest_in(first: Any, second: Any) -> Any:
    """The largest of 32 numbers."""
    return largest_of(larger(first, second))


@njit(**INLINED)
def pack_group_4(source: int, target: int, lane: int, scratch: int) -> bool:
    """32 weights of one row as 4 bits each; False if they do not come from 16 even levels."""
    first, second = load_floats(source), load_floats(source + 64)
    highest = largest_in(first, second)
    nothing = spread(ZERO)
    lowest = -largest_in(minus(nothing, first), minus(nothing, second))
    put_half(target + 2 * lane, (highest - lowest) / LEVELS_4)
    put_half(target + 32 + 2 * lane, lowest)
    scale, minimum = half_at(target + 2 * lane), half_at(target + 32 + 2 * lane)
    inverse = np.float32(1) / scale if scale > ZERO else ZERO
    low = rounded(times(minus(first, spread(minimum)), spread(inverse)))
    high = rounded(times(minus(second, spread(minimum)), spread(inverse)))
    off_low = size_of(minus(multiply_add(low, spread(scale), spread(minimum)), first))
    off_high = size_of(minus(multiply_add(high, spread(scale), spread(minimum)), second))
    if not largest_in(off_low, off_high) <= ROUNDINGS * max(abs(highest), abs(lowest)):
        return False
    if largest_in(low, high) > LEVELS_4:
        return False
    store_ints(scratch, as_ints(low))
    store_ints(scratch + 64, as_ints(high))
    for i in range(16):
        both = byte_at(scratch + 4 * i) | byte_at(scratch + 64 + 4 * i) << 4
        put_byte(target + 64 + 64 * (i // 4) + 4 * lane + i % 4, both)
    return True


@njit(**INLINED)
def pack_group_8(source: int, target: int, lane: int, scratch: int) -> None:
    """32 weights of one row as 8 bits each."""
    first, second = load_floats(source), load_floats(source + 64)
    put_half(target + 2 * lane, largest_in(size_of(first), size_of(second)) / LEVELS_8)
    scale = half_at(target + 2 * lane)
    inverse = np.float32(1) / scale if scale > ZERO else ZERO
    most = spread(LEVELS_8)
    for half in range(2):
        weights = load_floats(source + 64 * half)
        stored = rounded(times(weights, spread(inverse)))
        stored = minus(most, larger(minus(most, stored), spread(ZERO)))  # at most 127
        stored = larger(stored, minus(spread(ZERO), most))
        store_ints(scratch + 64 * half, as_ints(stored))
    for i in range(GROUP):
        put_byte(target + 32 + 64 * (i // 4) + 4 * lane + i % 4, byte_at(scratch + 4 * i) + 128)


def pack(task_address: int) -> None:
    """What each thread does: its share of the tiles."""
    task = pack_at(task_address)
    thread, threads = np.int64(thread_number()), np.int64(thread_count())
    groups, scratch = task.groups, task.scratch + 128 * thread
    failure = task.failures + 8 * thread
    for tile in range(task.tiles * thread // threads, task.tiles * (thread + 1) // threads):
        for lane in range(TILE):
            source = task.source + 4 * (tile * TILE + lane) * groups * GROUP
            for group in range(groups):
                place = source + 4 * GROUP * group
                if task.bits == 4:
                    target = task.target + (tile * groups + group) * BYTES_4
                    if not pack_group_4(place, target, lane, scratch):
                        put_byte(failure, 1)
                        return
                else:
                    target = task.target + (tile * groups + group) * BYTES_8
                    pack_group_8(place, target, lane, scratch)
