"""From GGUF blocks to float32 by compiled functions, on torch's threads: bit for bit the numbers of
``dequantise``, ten times as fast.

Each kind says what 16 neighbouring numbers of a block are (``…_run``); one template does the rest.
"""
# numba's decorators have no types, and only LLVM knows the type of a vector.
# mypy: disable-error-code="untyped-decorator, no-any-return"

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numba import njit, types

from clearhead.checkpoints.gguf.kinds import CODES, RUN, stored
from clearhead.checkpoints.gguf.unpack_rows import Rows
from clearhead.kernels.compiling import INLINED, bound, compiled, record_at
from clearhead.kernels.memory import (
    byte_at,
    call_with_three,
    half_at,
    integer_at,
    load_brain_floats,
    load_bytes,
    load_floats,
    load_halves,
    load_signed_bytes,
    put_float,
    store_floats,
    word_at,
)
from clearhead.kernels.threads import thread_functions
from clearhead.kernels.vectors import (
    add,
    as_floats,
    broadcast,
    broadcast_int,
    either,
    lane_numbers,
    masked,
    multiply,
    shifted_left,
    shifted_right,
    shifted_right_by,
    subtract,
)

thread_number, thread_count = thread_functions()


@njit(**INLINED)
def scaled(numbers: Any, offset: int, scale: Any) -> Any:
    """(q − offset)·scale."""
    less = subtract(as_floats(numbers), broadcast(np.float32(offset)))
    return multiply(less, broadcast(scale))


@njit(**INLINED)
def above(numbers: Any, scale: Any, minimum: Any) -> Any:
    """q·scale + minimum."""
    return add(multiply(as_floats(numbers), broadcast(scale)), broadcast(minimum))


@njit(**INLINED)
def nibbles(where: int, upper: int) -> Any:
    """The lower or upper four bits of 16 bytes."""
    return masked(shifted_right(load_bytes(where), 4 * upper), 15)


@njit(**INLINED)
def fifth_bits(where: int, run: int) -> Any:
    """16 of the 32 single bits at an address, each worth 16."""
    word = shifted_right_by(broadcast_int(word_at(where) >> 16 * run), lane_numbers())
    return shifted_left(masked(word, 1), 4)


@njit(**INLINED)
def q4_0_run(block: int, run: int) -> Any:
    """Q4_0: scale, 16 bytes."""
    return scaled(nibbles(block + 2, run), 8, half_at(block))


@njit(**INLINED)
def q4_1_run(block: int, run: int) -> Any:
    """Q4_1: scale, minimum, 16 bytes."""
    return above(nibbles(block + 4, run), half_at(block), half_at(block + 2))


@njit(**INLINED)
def q5_0_run(block: int, run: int) -> Any:
    """Q5_0: scale, fifth bits, 16 bytes."""
    numbers = either(nibbles(block + 6, run), fifth_bits(block + 2, run))
    return scaled(numbers, 16, half_at(block))


@njit(**INLINED)
def q5_1_run(block: int, run: int) -> Any:
    """Q5_1: scale, minimum, fifth bits, 16 bytes."""
    numbers = either(nibbles(block + 8, run), fifth_bits(block + 4, run))
    return above(numbers, half_at(block), half_at(block + 2))


@njit(**INLINED)
def q8_0_run(block: int, run: int) -> Any:
    """Q8_0: scale, 32 bytes."""
    return scaled(load_signed_bytes(block + 2 + RUN * run), 0, half_at(block))


@njit(**INLINED)
def q2_k_run(block: int, run: int) -> Any:
    """Q2_K: 16 bytes of scale and minimum, 64 bytes, scale, minimum of all."""
    packed = load_bytes(block + 16 + 32 * (run // 8) + RUN * (run % 2))
    numbers = masked(shifted_right(packed, run % 8 // 2 * 2), 3)
    both = byte_at(block + run)
    scale = half_at(block + 80) * np.float32(both & 15)
    return above(numbers, scale, -(half_at(block + 82) * np.float32(both >> 4)))


@njit(**INLINED)
def q3_k_run(block: int, run: int) -> Any:
    """Q3_K: 32 bytes of third bits, 64 bytes, 12 bytes of scales, scale of all."""
    packed = load_bytes(block + 32 + 32 * (run // 8) + RUN * (run % 2))
    numbers = masked(shifted_right(packed, run % 8 // 2 * 2), 3)
    third = shifted_right(load_bytes(block + RUN * (run % 2)), run // 2)
    numbers = either(numbers, shifted_left(masked(third, 1), 2))
    low = byte_at(block + 96 + run % 8) >> 4 * (run // 8) & 15
    high = byte_at(block + 104 + run % 4) >> 2 * (run // 4) & 3
    return scaled(numbers, 4, half_at(block + 108) * np.float32((low | high << 4) - 32))


@njit(**INLINED)
def six_bits(block: int, part: int, which: int) -> int:
    """Scale (``which`` 0) or minimum (1) of part 0 … 7 of a Q4_K or Q5_K block; see dequantise."""
    own = byte_at(block + 4 + 4 * which + part % 4)
    if part < 4:
        return own & 63
    return byte_at(block + 12 + part % 4) >> 4 * which & 15 | own >> 6 << 4


@njit(**INLINED)
def q4_k_run(block: int, run: int) -> Any:
    """Q4_K: scale, minimum, 12 bytes of scales and minima, 128 bytes."""
    part = run // 2
    numbers = nibbles(block + 16 + 32 * (part // 2) + RUN * (run % 2), part % 2)
    scale = half_at(block) * np.float32(six_bits(block, part, 0))
    return above(numbers, scale, -(half_at(block + 2) * np.float32(six_bits(block, part, 1))))


@njit(**INLINED)
def q5_k_run(block: int, run: int) -> Any:
    """Q5_K: as Q4_K, with 32 bytes of fifth bits before the 128."""
    part = run // 2
    numbers = nibbles(block + 48 + 32 * (part // 2) + RUN * (run % 2), part % 2)
    fifth = shifted_right(load_bytes(block + 16 + RUN * (run % 2)), part)
    numbers = either(numbers, shifted_left(masked(fifth, 1), 4))
    scale = half_at(block) * np.float32(six_bits(block, part, 0))
    return above(numbers, scale, -(half_at(block + 2) * np.float32(six_bits(block, part, 1))))


@njit(**INLINED)
def q6_k_run(block: int, run: int) -> Any:
    """Q6_K: 128 bytes, 64 bytes of upper bits, 16 scales, scale of all."""
    half, quarter, place = run // 8, run % 8 // 2, RUN * (run % 2)
    numbers = nibbles(block + 64 * half + 32 * (quarter % 2) + place, quarter // 2)
    upper = shifted_right(load_bytes(block + 128 + 32 * half + place), 2 * quarter)
    numbers = either(numbers, shifted_left(masked(upper, 3), 4))
    scale = (byte_at(block + 192 + run) ^ 128) - 128  # a byte with a sign
    return scaled(numbers, 32, half_at(block + 208) * np.float32(scale))


@njit(**INLINED)
def f16_run(block: int, _run: int) -> Any:
    """16 numbers in half precision."""
    return load_halves(block)


@njit(**INLINED)
def bf16_run(block: int, _run: int) -> Any:
    """16 numbers in bfloat16."""
    return load_brain_floats(block)


@njit(**INLINED)
def f32_run(block: int, _run: int) -> Any:
    """16 numbers in float32."""
    return load_floats(block)


RUNS = {
    "Q4_0": q4_0_run, "Q4_1": q4_1_run, "Q5_0": q5_0_run, "Q5_1": q5_1_run, "Q8_0": q8_0_run,
    "Q2_K": q2_k_run, "Q3_K": q3_k_run, "Q4_K": q4_k_run, "Q5_K": q5_k_run, "Q6_K": q6_k_run,
    "F16": f16_run, "BF16": bf16_run, "F32": f32_run,
}  # fmt: skip

run_of, runs_of_block, bytes_of_block = f32_run, 1, 64  # what the template's copies have instead


def unpack_blocks(blocks: int, count: int, target: int) -> None:
    """Write the numbers of ``count`` blocks."""
    for block in range(count):
        source = blocks + block * bytes_of_block
        for run in range(runs_of_block):
            store_floats(target + 64 * (block * runs_of_block + run), run_of(source, run))


def unpack_iq4_nl(blocks: int, count: int, target: int) -> None:
    """Write the numbers of ``count`` blocks of IQ4_NL: scale, 16 bytes; a code stands for q."""
    for block in range(count):
        source = blocks + 18 * block
        scale = half_at(source)
        for i in range(RUN):
            both, where = byte_at(source + 2 + i), target + 4 * (32 * block + i)
            put_float(where, scale * np.float32(CODES[both & 15]))
            put_float(where + 4 * RUN, scale * np.float32(CODES[both >> 4]))


@functools.cache
def unpack_function(name: str) -> int:
    """Compile or load what unpacks blocks of a kind; the address of f(blocks, count, target)."""
    function = unpack_iq4_nl
    if name in RUNS:
        length, size = stored(name)
        function = bound(
            unpack_blocks, f"unpack_{name.lower()}",
            run_of=RUNS[name], runs_of_block=length // RUN, bytes_of_block=size,
        )  # fmt: skip
    return int(compiled(function, types.void(*[types.int64] * 3)).address)


rows_at = record_at(Rows)


def unpack_rows(task_address: int) -> None:
    """Unpack this thread's share of the rows."""
    task = rows_at(task_address)
    thread, threads = np.int64(thread_number()), np.int64(thread_count())
    for row in range(task.rows * thread // threads, task.rows * (thread + 1) // threads):
        source = task.source + task.row_bytes * integer_at(task.order + 8 * row)
        call_with_three(task.unpack, source, task.blocks, task.target + task.row * row)


@functools.cache
def rows_function() -> int:
    """Compile or load ``unpack_rows``; its address."""
    return int(compiled(unpack_rows, types.void(types.int64)).address)
