"""The kernel of ``decode.py``: Python in the small part of it that numba compiles.

One task takes one key/value head and ``CHUNK`` of its keys, and serves all query rows of that
head's group, so a cached key or value is fetched from memory once however many query heads share
it. A task leaves, per query row, its largest score, Σ exp(score − largest) and
Σ exp(score − largest)·v; then the tasks of each row are merged by their largest scores (the online
softmax of Milakov and Gimelshein, 2018).

In order: numbers, memory, scores, values, where things lie, one task and one row of the output,
and the functions that are called from outside. Arrays lie where the addresses of a ``Step`` point;
nothing is allocated.

Modules in a folder ``kernels`` import numba at once, so whoever uses one imports it late; and the
tests' import hook leaves them alone, because numba cannot compile what a type checker wrapped.
"""
# numba's decorators have no types, and what carray makes of an address is known to numba alone.
# mypy: disable-error-code="untyped-decorator, no-any-return"

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from llvmlite import ir
from numba import carray, njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from clearhead.kernels.compiling import INLINED
from clearhead.kernels.threads import thread_functions

if TYPE_CHECKING:
    from clearhead.attention.decode import Step

Address: TypeAlias = int
Float: TypeAlias = np.float32
Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float32]]

# Chunks are cut by key number alone, never by batch size or thread count, so the bits of a row
# depend on nothing but the row.
CHUNK = 128
# A loop of constant length lives in registers; 64 is the usual head width.
LANES = 64
FLOAT_BYTES = 4

# Fused multiply-add suits all; sums may be reordered except where the order is the method; only
# ``largest_of`` may disregard NaN.
AS_WRITTEN = {"contract"}
REORDERED = {"contract", "reassoc", "nsz", "arcp"}
DISREGARDING_NAN = {"nnan", "nsz"}
# Numbers. They are float32, because a Python float would drag the computation to float64.
ZERO = np.float32(0)
ONE = np.float32(1)
TWO = np.float32(2)
MINUS_INFINITY = np.float32(-np.inf)
LOG2_E = np.float32(1 / math.log(2))
LN2_HIGH = np.float32(355 / 512)  # so few bits that n·LN2_HIGH is exact
LN2_LOW = np.float32(math.log(2) - 355 / 512)
ROUNDER = np.float32(1.5 * 2**23)  # x + ROUNDER holds x's nearest whole number in its last bits
SMALLEST_EXPONENT = np.float32(-87)  # e⁻⁸⁷ = 2⁻¹²⁶·1.4: below it, float32 loses digits
MANTISSA_BITS = np.int32(23)
EXPONENT_BIAS = np.int32(127)
FACTORIAL_2, FACTORIAL_3, FACTORIAL_4, FACTORIAL_5, FACTORIAL_6, FACTORIAL_7 = (
    np.float32(1 / math.factorial(n)) for n in range(2, 8)
)


@njit(fastmath=AS_WRITTEN, **INLINED)
def exp_parts(x: Float) -> tuple[Float, Float]:
    """2ⁿ and eʳ−1 with eˣ = 2ⁿ·eʳ, |r| ≤ ln(2)/2, for x ≤ 0. The Taylor series errs by 5e-9."""
    x = SMALLEST_EXPONENT if x < SMALLEST_EXPONENT else x  # this way round, NaN stays NaN
    rounded = x * LOG2_E + ROUNDER
    n = rounded - ROUNDER
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    series = FACTORIAL_6 + r * FACTORIAL_7
    series = FACTORIAL_4 + r * (FACTORIAL_5 + r * series)
    series = FACTORIAL_2 + r * (FACTORIAL_3 + r * series)
    exponent = np.int32(np.float32(rounded).view(np.int32) + EXPONENT_BIAS)
    power = np.int32(exponent << MANTISSA_BITS).view(np.float32)
    return power, r + r * r * series


@njit(fastmath=AS_WRITTEN, **INLINED)
def exp(x: Float) -> Float:
    """eˣ for x ≤ 0; 0 below -87.

    Not the ones of ``kernels/exponential.py``: this kernel is written for single numbers, and LLVM
    makes vectors of it, as long as this machine's registers.
    """
    power, rest = exp_parts(x)
    return ZERO if x < SMALLEST_EXPONENT else power + power * rest


@njit(fastmath=AS_WRITTEN, **INLINED)
def tanh(x: Float) -> Float:
    """tanh(x) from e = e^(−2|x|) − 1, which keeps its digits near 0."""
    power, rest = exp_parts(-TWO * abs(x))
    e = power * rest + (power - ONE)
    return e / (e + TWO) if x < ZERO else -e / (e + TWO)


# Memory.
@intrinsic
def pointer(_typing: Any, _address: Any) -> Any:
    """The pointer to an address."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(types.voidptr))

    return types.voidptr(types.int64), generate


@intrinsic
def stack_of_lanes(_typing: Any) -> Any:
    """The pointer to LANES floats on the stack, which the compiler knows to overlap no array."""

    def generate(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        lanes = cgutils.alloca_once(builder, ir.ArrayType(ir.FloatType(), LANES))
        return builder.bitcast(lanes, context.get_value_type(types.voidptr))

    return types.voidptr(), generate


@njit(fastmath=REORDERED, **INLINED)
def floats(address: Address, count: int) -> Floats:
    """The ``count`` float32 numbers at an address."""
    return carray(pointer(address), count, np.float32)


# Scores of one query row; strides are in bytes.
@njit(fastmath=REORDERED, **INLINED)
def add_scores(
    scores: Floats, count: int, query: Address, key: Address, stride: int, width: int
) -> None:
    """scores[j] += q·kⱼ over ``width`` columns, at most LANES."""
    lanes = carray(stack_of_lanes(), LANES, np.float32)
    columns = floats(query, width)
    for d in range(width):
        lanes[d] = columns[d]
    for j in range(count):
        row = floats(key + j * stride, width)
        score = ZERO
        for d in range(width):
            score += lanes[d] * row[d]
        scores[j] += score


@njit(fastmath=REORDERED, **INLINED)
def score(
    scores: Floats, count: int, query: Address, key: Address, stride: int, key_dim: int
) -> None:
    """scores[j] = q·kⱼ."""
    for j in range(count):
        scores[j] = ZERO
    whole = key_dim // LANES * LANES
    for d in range(0, whole, LANES):
        offset = d * FLOAT_BYTES
        add_scores(scores, count, query + offset, key + offset, stride, LANES)
    if whole < key_dim:
        offset = whole * FLOAT_BYTES
        add_scores(scores, count, query + offset, key + offset, stride, key_dim - whole)


@njit(fastmath=REORDERED, **INLINED)
def scale_and_cap(scores: Floats, count: int, scale: Float, softcap: Float) -> None:
    """scores = cap(scale·scores); a softcap of 0 is none."""
    for j in range(count):
        scores[j] *= scale
    if softcap > ZERO:
        for j in range(count):
            scores[j] = softcap * tanh(scores[j] / softcap)


@njit(fastmath=DISREGARDING_NAN, **INLINED)
def largest_of(scores: Floats, count: int) -> Float:
    """The largest score. With a NaN among them it may be any: the row's total is NaN then."""
    largest = scores[0]
    for j in range(count):
        largest = scores[j] if scores[j] > largest else largest
    return largest


@njit(fastmath=REORDERED, **INLINED)
def exponentiate(scores: Floats, count: int, largest: Float) -> Float:
    """scores = exp(scores − largest); returns their total."""
    total = ZERO
    for j in range(count):
        weight = exp(scores[j] - largest)
        scores[j] = weight
        total += weight
    return total


# Values, mixed by one query row's weights.
@njit(fastmath=REORDERED, **INLINED)
def mix_lanes(
    mixed: Floats, weights: Floats, count: int, value: Address, stride: int, width: int
) -> None:
    """mixed = Σⱼ wⱼ·vⱼ over ``width`` columns, at most LANES; eight keys to a pass over them."""
    lanes = carray(stack_of_lanes(), LANES, np.float32)
    for d in range(width):
        lanes[d] = ZERO
    eights = count // 8 * 8
    for j in range(0, eights, 8):
        w0, w1, w2, w3 = weights[j], weights[j + 1], weights[j + 2], weights[j + 3]
        w4, w5, w6, w7 = weights[j + 4], weights[j + 5], weights[j + 6], weights[j + 7]
        row = value + j * stride
        v0, v1 = floats(row, width), floats(row + stride, width)
        v2, v3 = floats(row + 2 * stride, width), floats(row + 3 * stride, width)
        v4, v5 = floats(row + 4 * stride, width), floats(row + 5 * stride, width)
        v6, v7 = floats(row + 6 * stride, width), floats(row + 7 * stride, width)
        for d in range(width):
            first_four = w0 * v0[d] + w1 * v1[d] + w2 * v2[d] + w3 * v3[d]
            last_four = w4 * v4[d] + w5 * v5[d] + w6 * v6[d] + w7 * v7[d]
            lanes[d] += first_four + last_four
    for j in range(eights, count):
        row_values = floats(value + j * stride, width)
        for d in range(width):
            lanes[d] += weights[j] * row_values[d]
    for d in range(width):
        mixed[d] = lanes[d]


@njit(fastmath=REORDERED, **INLINED)
def mix(
    mixed: Address, weights: Floats, count: int, value: Address, stride: int, value_dim: int
) -> None:
    """mixed = Σⱼ wⱼ·vⱼ."""
    whole = value_dim // LANES * LANES
    for d in range(0, whole, LANES):
        offset = d * FLOAT_BYTES
        lanes = floats(mixed + offset, LANES)
        mix_lanes(lanes, weights, count, value + offset, stride, LANES)
    if whole < value_dim:
        offset, rest = whole * FLOAT_BYTES, value_dim - whole
        lanes = floats(mixed + offset, rest)
        mix_lanes(lanes, weights, count, value + offset, stride, rest)


# Where things lie. A group is the query heads that share a key/value head, a row of it one query
# of one of them.
@njit(fastmath=REORDERED, **INLINED)
def query_at(step: Step, batch: int, kv_head: int, row: int) -> Address:
    """A row of the group of a key/value head."""
    head = (kv_head * step.rows + row) // step.queries
    query = row % step.queries
    offset = batch * step.query_batch + head * step.query_head + query * step.query_row
    return step.query + offset * FLOAT_BYTES


@njit(fastmath=REORDERED, **INLINED)
def key_at(step: Step, batch: int, kv_head: int, key: int) -> Address:
    """One key."""
    offset = batch * step.key_batch + kv_head * step.key_head + key * step.key_row
    return step.key + offset * FLOAT_BYTES


@njit(fastmath=REORDERED, **INLINED)
def value_at(step: Step, batch: int, kv_head: int, key: int) -> Address:
    """One key's value."""
    offset = batch * step.value_batch + kv_head * step.value_head + key * step.value_row
    return step.value + offset * FLOAT_BYTES


@njit(fastmath=REORDERED, **INLINED)
def scores_of(step: Step, thread: int, row: int) -> Floats:
    """A thread's scratch for one row's scores, later its weights."""
    return floats(step.scores + (thread * step.rows + row) * CHUNK * FLOAT_BYTES, CHUNK)


@njit(fastmath=REORDERED, **INLINED)
def partial_at(step: Step, task: int, row: int) -> Address:
    """The address of a task's result for a row: mixed values, largest score, total."""
    index = task * step.rows + row
    return step.partials + index * (step.value_dim + 2) * FLOAT_BYTES


@njit(fastmath=REORDERED, **INLINED)
def partial_of(step: Step, task: int, row: int) -> Floats:
    """The result of a task for a row."""
    return floats(partial_at(step, task, row), step.value_dim + 2)


@njit(fastmath=REORDERED, **INLINED)
def sink_of(step: Step, index: int) -> Float:
    """The sink of an output row's head; without sinks one that weighs nothing."""
    if step.sinks == 0:
        return MINUS_INFINITY
    return floats(step.sinks, step.heads)[index // step.queries % step.heads]


# One task, and one row of the output.
@njit(fastmath=REORDERED, **INLINED)
def attend_to_chunk(step: Step, task: int, thread: int) -> None:
    """Every query row of one key/value head, over one chunk of its keys."""
    head, first = task // step.chunks, task % step.chunks * CHUNK
    batch, kv_head = head // step.kv_heads, head % step.kv_heads
    count = min(CHUNK, step.keys - first)
    key, key_stride = key_at(step, batch, kv_head, first), step.key_row * FLOAT_BYTES
    value, value_stride = value_at(step, batch, kv_head, first), step.value_row * FLOAT_BYTES
    for row in range(step.rows):
        scores, query = scores_of(step, thread, row), query_at(step, batch, kv_head, row)
        score(scores, count, query, key, key_stride, step.key_dim)
        scale_and_cap(scores, count, step.scale, step.softcap)
        partial = partial_of(step, task, row)
        partial[step.value_dim] = largest_of(scores, count)
        partial[step.value_dim + 1] = exponentiate(scores, count, partial[step.value_dim])
    for row in range(step.rows):
        weights, mixed = scores_of(step, thread, row), partial_at(step, task, row)
        mix(mixed, weights, count, value, value_stride, step.value_dim)


@njit(fastmath=REORDERED, **INLINED)
def merge_row(step: Step, index: int) -> np.int64:
    """One row of the output from what the tasks of its chunks left, and the head's sink.

    Returns how many of its numbers are NaN.
    """
    head, row, value_dim = index // step.rows, index % step.rows, step.value_dim
    tasks = range(head * step.chunks, (head + 1) * step.chunks)
    sink = sink_of(step, index)
    largest = sink
    for task in tasks:
        chunk_largest = partial_of(step, task, row)[value_dim]
        largest = chunk_largest if chunk_largest > largest else largest
    output = floats(step.output + index * value_dim * FLOAT_BYTES, value_dim)
    for d in range(value_dim):
        output[d] = ZERO
    total = exp(sink - largest)
    for task in tasks:
        partial = partial_of(step, task, row)
        weight = exp(partial[value_dim] - largest)
        total += weight * partial[value_dim + 1]
        for d in range(value_dim):
            output[d] += weight * partial[d]
    missing = np.int64(0)
    for d in range(value_dim):
        output[d] /= total
        missing += output[d] != output[d]
    return missing


# What is called from outside.
thread_number, thread_count = thread_functions()


def attend(steps: Any) -> None:
    """One thread's share of the tasks."""
    step = carray(steps, 1)[0]
    thread, threads = np.int64(thread_number()), np.int64(thread_count())
    tasks = step.batch * step.kv_heads * step.chunks
    for task in range(tasks * thread // threads, tasks * (thread + 1) // threads):
        attend_to_chunk(step, task, thread)


def merge(steps: Any) -> np.int64:
    """Merge the partial results on one thread: 1/250 of the work is not worth another barrier.

    Returns how many numbers of the output are NaN.
    """
    step = carray(steps, 1)[0]
    missing = np.int64(0)
    for index in range(step.batch * step.heads * step.queries):
        missing += merge_row(step, index)
    return missing
