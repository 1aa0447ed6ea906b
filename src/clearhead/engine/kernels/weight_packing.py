"""Quantises float32 matrices and packs them into tiles of Q4_1 or Q8_0, on torch's threads."""
# numba's decorators have no types, and only LLVM knows the type of a vector.
# mypy: disable-error-code="untyped-decorator, no-any-return"

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from clearhead.engine.kernels.numbers import ZERO, zero_or_nan
from clearhead.engine.kernels.parts import pack_at
from clearhead.engine.kernels.structures import GROUP, TILE
from clearhead.engine.kernels.threads import thread_count, thread_number
from clearhead.kernels.compiling import INLINED
from clearhead.kernels.memory import (
    byte_at,
    half_at,
    load_floats,
    put_byte,
    put_half,
    store_ints,
)
from clearhead.kernels.vectors import (
    absolute,
    as_ints,
    broadcast,
    larger,
    largest_of,
    multiply,
    multiply_add,
    rounded,
    subtract,
)

BYTES_4, BYTES_8 = 16 * 20, 16 * 34  # of one group of a tile of Q4_1 and of Q8_0
LEVELS_4, LEVELS_8 = np.float32(15), np.float32(127)
# Weights dequantised from 16 levels differ from them by rounding errors only, a few times 2⁻²⁴.
TOLERANCE = np.float32(1e-6)


@njit(**INLINED)
def largest_in(first: Any, second: Any) -> Any:
    """The maximum of 32 numbers."""
    return largest_of(larger(first, second))


@njit(**INLINED)
def pack_group_4(source: int, target: int, lane: int, scratch: int) -> bool:
    """Pack 32 weights of one row with 4 bits; False if they are not 16 evenly spaced levels."""
    first, second = load_floats(source), load_floats(source + 64)
    if zero_or_nan(first, second) != ZERO:  # also true of NaN
        return False
    highest = largest_in(first, second)
    zero = broadcast(ZERO)
    lowest = -largest_in(subtract(zero, first), subtract(zero, second))
    put_half(target + 2 * lane, (highest - lowest) / LEVELS_4)
    put_half(target + 32 + 2 * lane, lowest)
    scale, minimum = half_at(target + 2 * lane), half_at(target + 32 + 2 * lane)
    inverse = np.float32(1) / scale if scale > ZERO else ZERO
    low = rounded(multiply(subtract(first, broadcast(minimum)), broadcast(inverse)))
    high = rounded(multiply(subtract(second, broadcast(minimum)), broadcast(inverse)))
    error_low = absolute(subtract(multiply_add(low, broadcast(scale), broadcast(minimum)), first))
    error_high = absolute(
        subtract(multiply_add(high, broadcast(scale), broadcast(minimum)), second)
    )
    if not largest_in(error_low, error_high) <= TOLERANCE * max(abs(highest), abs(lowest)):
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
    """Pack 32 weights of one row with 8 bits; if one is NaN or infinite, the scale is NaN."""
    first, second = load_floats(source), load_floats(source + 64)
    largest = largest_in(absolute(first), absolute(second))
    put_half(target + 2 * lane, largest / LEVELS_8 + zero_or_nan(first, second))
    scale = half_at(target + 2 * lane)
    inverse = np.float32(1) / scale if scale > ZERO else ZERO
    most = broadcast(LEVELS_8)
    for half in range(2):
        weights = load_floats(source + 64 * half)
        stored = rounded(multiply(weights, broadcast(inverse)))
        stored = subtract(most, larger(subtract(most, stored), broadcast(ZERO)))  # at most 127
        stored = larger(stored, subtract(broadcast(ZERO), most))
        store_ints(scratch + 64 * half, as_ints(stored))
    for i in range(GROUP):
        put_byte(target + 32 + 64 * (i // 4) + 4 * lane + i % 4, byte_at(scratch + 4 * i) + 128)


def pack_weights(task_address: int) -> None:
    """Pack this thread's share of the tiles."""
    task = pack_at(task_address)
    thread, threads = np.int64(thread_number()), np.int64(thread_count())
    groups, scratch = task.groups, task.scratch + 128 * thread
    failure = task.failures + 8 * thread
    for tile in range(task.tiles * thread // threads, task.tiles * (thread + 1) // threads):
        for lane in range(TILE):
            source = task.source + 4 * (tile * TILE + lane) * groups * GROUP
            for group in range(groups):
                group_source = source + 4 * GROUP * group
                if task.bits == 4:
                    target = task.target + (tile * groups + group) * BYTES_4
                    if not pack_group_4(group_source, target, lane, scratch):
                        put_byte(failure, 1)
                        return
                else:
                    target = task.target + (tile * groups + group) * BYTES_8
                    pack_group_8(group_source, target, lane, scratch)
