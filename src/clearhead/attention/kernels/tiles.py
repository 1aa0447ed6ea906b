"""The kernel of ``tiles.py``: Python in the small part of it that numba compiles.

A *tile* is ``LINE`` queries of one head, one to a lane, so that largest score, total and mixed
values of all of them are found without ever looking across lanes: scores lie as (key, query),
mixed values as (column, query). Keys come ``KEYS`` at a time; with each run of them a tile's
totals and mixed values are brought to the new largest score (the online softmax of Milakov and
Gimelshein, 2018). What a tile needs meanwhile stays in the first two caches.

A run of keys begins at a multiple of ``KEYS`` whatever the tile, and a hidden key adds exactly 0:
a query's bits depend on nothing but the query and what it sees.

In order: numbers, a tile's memory, one tile over one run of keys, one task, and the function that
is called from outside.
"""
# numba's decorators have no types, and what its vectors are is known to LLVM alone.
# mypy: disable-error-code="untyped-decorator, no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import carray, njit

from clearhead.attention.kernels.tile_product import (
    FLOAT_BYTES,
    LINE,
    LINE_BYTES,
    ROWS,
    VECTOR_BYTES,
    VECTORS,
    add_tile,
    put_tile,
    put_transposed,
)
from clearhead.kernels.compiling import INLINED
from clearhead.kernels.exponential import LOG2_E, SMALLEST_POWER, exp_nonpositive, power_parts
from clearhead.kernels.memory import (
    add_one,
    float_at,
    load_floats,
    put_float,
    store_floats,
)
from clearhead.kernels.operations import LANES
from clearhead.kernels.threads import thread_functions
from clearhead.kernels.vectors import (
    absolute,
    add,
    between,
    broadcast,
    divide,
    larger,
    multiply,
    multiply_add,
    no_floats,
    subtract,
    where_below,
    with_sign_of,
)

if TYPE_CHECKING:
    from clearhead.attention.tiles import Work

KEYS = 128  # of a run; their scores take 16 KB, half of the first cache
TILES = 2  # of a task, which share a run of keys while it is in the cache
STATE_LINES = 3  # largest scores, totals, and what is kept of an earlier total
LINES = ROWS + KEYS + ROWS + TILES * STATE_LINES  # a thread's memory beside queries and values

# Numbers. They are float32, because a Python float would drag the computation to float64.
ONE, TWO = np.float32(1), np.float32(2)
MINUS_INFINITY = np.float32(-np.inf)
LOWEST = np.finfo(np.float32).min  # instead of −∞, which less itself is NaN


@njit(**INLINED)
def capped(x: Any, softcap: Any) -> Any:
    """softcap·tanh(x / softcap), from e = 2^(−2·log₂e·|x / softcap|) − 1, which keeps its digits
    near 0."""
    exponent = multiply(absolute(divide(x, softcap)), broadcast(-TWO * LOG2_E))
    exponent = where_below(exponent, broadcast(SMALLEST_POWER), broadcast(SMALLEST_POWER), exponent)
    power, rest = power_parts(exponent)
    e = multiply_add(power, rest, subtract(power, broadcast(ONE)))
    return with_sign_of(multiply(softcap, divide(e, add(e, broadcast(TWO)))), x)


# A tile's memory: its queries as (column, query), its mixed values the same way, its state.
@njit(**INLINED)
def begin_tile(work: Work, place: int, query: int, first: int) -> None:
    """Queries from ``first`` on, scaled and transposed; nothing mixed yet."""
    row_bytes = work.query_row * FLOAT_BYTES
    whole = work.key_dim // LANES * LANES if first + LINE <= work.queries else 0
    scales = broadcast(work.scale)
    for lane in range(0, LINE, LANES):
        for d in range(0, whole, LANES):
            to = place + d * LINE_BYTES + lane * FLOAT_BYTES
            source = query + (first + lane) * row_bytes + d * FLOAT_BYTES
            put_transposed(to, LINE_BYTES, source, row_bytes, scales)
    for lane in range(LINE):
        row = query + min(first + lane, work.queries - 1) * row_bytes
        for d in range(whole, work.key_dim):
            number = float_at(row + d * FLOAT_BYTES) * work.scale
            put_float(place + d * LINE_BYTES + lane * FLOAT_BYTES, number)
    mixed = place + work.key_dim * LINE_BYTES
    for d in range(work.value_dim * VECTORS):
        store_floats(mixed + d * VECTOR_BYTES, no_floats())
    state = mixed + work.value_dim * LINE_BYTES
    for v in range(VECTORS):
        at = state + v * VECTOR_BYTES
        store_floats(at, broadcast(LOWEST))
        store_floats(at + LINE_BYTES, no_floats())


@njit(**INLINED)
def finish_tile(work: Work, place: int, output: int, logsum: int, first: int) -> None:
    """Mixed values over their total, transposed back; and the logarithm of the total."""
    mixed = place + work.key_dim * LINE_BYTES
    state = mixed + work.value_dim * LINE_BYTES
    count = min(LINE, work.queries - first)
    row_bytes = work.output_row * FLOAT_BYTES
    for lane in range(count):
        at = state + lane * FLOAT_BYTES
        largest, total = np.float64(float_at(at)), float_at(at + LINE_BYTES)
        seen = total != 0  # or this query sees nothing
        logarithm = largest + np.log(np.float64(total)) if seen else 0.0
        put_float(logsum + (first + lane) * FLOAT_BYTES, np.float32(logarithm))
        put_float(at + LINE_BYTES, ONE / total if seen else ONE)
    for v in range(VECTORS):
        share = load_floats(state + LINE_BYTES + v * VECTOR_BYTES)
        for d in range(work.value_dim):
            at = mixed + d * LINE_BYTES + v * VECTOR_BYTES
            store_floats(at, multiply(load_floats(at), share))
    whole = work.value_dim // LANES * LANES if count == LINE else 0
    for lane in range(0, LINE, LANES):
        for d in range(0, whole, LANES):
            to = output + (first + lane) * row_bytes + d * FLOAT_BYTES
            source = mixed + d * LINE_BYTES + lane * FLOAT_BYTES
            put_transposed(to, row_bytes, source, LINE_BYTES, broadcast(ONE))
    for lane in range(count):
        row = output + (first + lane) * row_bytes
        for d in range(whole, work.value_dim):
            number = float_at(mixed + d * LINE_BYTES + lane * FLOAT_BYTES)
            put_float(row + d * FLOAT_BYTES, number)


# One tile over one run of keys.
@njit(**INLINED)
def score(work: Work, scores: int, queries: int, key: int, start: int, stop: int) -> None:
    """scores[j, :] = k·q for keys start … stop − 1, ROWS at a time.

    The last ROWS may begin before ``start`` or end after ``stop``, but not after the last key.
    """
    row_bytes = work.key_row * FLOAT_BYTES
    for j in range(start, stop, ROWS):
        first = min(j, work.keys - ROWS)
        put_tile(
            scores + (first - start) * LINE_BYTES, key + first * row_bytes,
            row_bytes, FLOAT_BYTES, work.key_dim, queries,
        )  # fmt: skip


@njit(**INLINED)
def cap(scores: int, count: int, softcap: Any) -> None:
    """All scores of a run, capped."""
    for at in range(scores, scores + count * LINE_BYTES, VECTOR_BYTES):
        store_floats(at, capped(load_floats(at), softcap))


@njit(**INLINED)
def hide(work: Work, scores: int, first: int, start: int, stop: int) -> None:
    """−∞ on what the tile's queries from ``first`` on do not see of keys start … stop − 1."""
    standing = first + work.offset
    if stop - 1 <= standing + work.after and start >= standing + LINE - 1 - work.before:
        return
    for j in range(start, stop):
        low = min(max(j - work.after - standing, 0), LINE)
        high = min(max(j + work.before - standing + 1, 0), LINE)
        for v in range(VECTORS):
            at = scores + (j - start) * LINE_BYTES + v * VECTOR_BYTES
            seen = between(load_floats(at), low - v * LANES, high - v * LANES)
            store_floats(at, seen)


@njit(**INLINED)
def weigh(scores: int, count: int, state: int) -> None:
    """Scores become weights, of one vector of queries; largest, total and what is kept of the
    earlier total are brought up to date. ``count`` is even."""
    earlier = load_floats(state)
    largest, second = earlier, earlier
    for at in range(scores, scores + count * LINE_BYTES, 2 * LINE_BYTES):
        largest = larger(load_floats(at), largest)
        second = larger(load_floats(at + LINE_BYTES), second)
    largest = larger(second, largest)
    kept = exp_nonpositive(subtract(earlier, largest))
    total, second_total = no_floats(), no_floats()
    for at in range(scores, scores + count * LINE_BYTES, 2 * LINE_BYTES):
        weight = exp_nonpositive(subtract(load_floats(at), largest))
        store_floats(at, weight)
        total = add(total, weight)
        weight = exp_nonpositive(subtract(load_floats(at + LINE_BYTES), largest))
        store_floats(at + LINE_BYTES, weight)
        second_total = add(second_total, weight)
    before = load_floats(state + LINE_BYTES)
    store_floats(state, largest)
    store_floats(state + LINE_BYTES, multiply_add(before, kept, add(total, second_total)))
    store_floats(state + 2 * LINE_BYTES, kept)


@njit(**INLINED)
def attend_to_run(
    work: Work, place: int, scores: int, first: int, key: int, value: int, start: int, stop: int
) -> None:
    """One tile, of the queries from ``first`` on, over keys start … stop − 1 as far as seen."""
    standing = first + work.offset
    last = min(first + LINE, work.queries) - 1 + work.offset
    start = max(start, (standing - work.before) // ROWS * ROWS)
    stop = min(stop, last + work.after + 1)
    if start >= stop:
        return
    count = stop - start
    score(work, scores, place, key, start, stop)
    if work.softcap > 0:
        cap(scores, count, broadcast(work.softcap))
    hide(work, scores, first, start, stop)
    if count % 2:
        for v in range(VECTORS):  # one more key, which nobody sees
            store_floats(scores + count * LINE_BYTES + v * VECTOR_BYTES, broadcast(MINUS_INFINITY))
    mixed = place + work.key_dim * LINE_BYTES
    state = mixed + work.value_dim * LINE_BYTES
    for v in range(VECTORS):
        weigh(scores + v * VECTOR_BYTES, count + count % 2, state + v * VECTOR_BYTES)
    row_bytes = work.value_row * FLOAT_BYTES
    for d in range(0, work.value_dim, ROWS):
        add_tile(
            mixed + d * LINE_BYTES, state + 2 * LINE_BYTES,
            value + start * row_bytes + d * FLOAT_BYTES, FLOAT_BYTES, row_bytes, count, scores,
        )  # fmt: skip


# One task.
@njit(**INLINED)
def attend_to_all(work: Work, scratch: int, batch: int, head: int, first: int) -> None:
    """TILES tiles of one head, of the queries from ``first`` on, over all keys that they see."""
    kv_head = head // (work.heads // work.kv_heads)
    query = work.query + (batch * work.query_batch + head * work.query_head) * FLOAT_BYTES
    key = work.key + (batch * work.key_batch + kv_head * work.key_head) * FLOAT_BYTES
    value = work.value + (batch * work.value_batch + kv_head * work.value_head) * FLOAT_BYTES
    output = work.output + (batch * work.output_batch + head * work.output_head) * FLOAT_BYTES
    logsum = work.logsum + (batch * work.heads + head) * work.queries * FLOAT_BYTES
    scores = scratch + ROWS * LINE_BYTES  # the last rows may begin before, and end after them
    places = scores + (KEYS + ROWS) * LINE_BYTES
    tile_bytes = (work.key_dim + work.value_dim) * LINE_BYTES + STATE_LINES * LINE_BYTES
    end = min(first + TILES * LINE, work.queries)
    for tile in range(first, end, LINE):
        begin_tile(work, places + (tile - first) // LINE * tile_bytes, query, tile)
    low = max(0, first + work.offset - work.before) // KEYS * KEYS
    high = min(work.keys, end + work.offset + work.after)
    for start in range(low, high, KEYS):
        for tile in range(first, end, LINE):
            place = places + (tile - first) // LINE * tile_bytes
            stop = min(start + KEYS, high)
            attend_to_run(work, place, scores, tile, key, value, start, stop)
    for tile in range(first, end, LINE):
        finish_tile(work, places + (tile - first) // LINE * tile_bytes, output, logsum, tile)


# What is called from outside.
thread_number, _ = thread_functions()


def attend(works: Any) -> None:
    """One thread's work: tasks that nobody has taken, those of the last queries first, which
    see most if the mask is causal."""
    work = carray(works, 1)[0]
    scratch = work.scratch + np.int64(thread_number()) * work.scratch_bytes
    heads = work.batch * work.heads
    tasks = -(-work.queries // (TILES * LINE))
    taken = add_one(work.taken)
    while taken < heads * tasks:
        number, task = taken % heads, tasks - 1 - taken // heads
        attend_to_all(work, scratch, number // work.heads, number % work.heads, task * TILES * LINE)
        taken = add_one(work.taken)
