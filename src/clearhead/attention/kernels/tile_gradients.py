"""The kernel of ``tile_gradients.py``: Python in the small part of it that numba compiles.

With a head's scores s, weights p = exp(s − log-sum-exp), and gradient g of its output::

    dp = g·vᵀ    ds = scale·p·(dp − Σ g·output)    dv = pᵀ·g    dk = dsᵀ·q    dq = ds·k

A thread takes one head. It goes over its keys, a block of ``KEYS`` at a time, and for each block
over the tiles of queries that see some of it. Weights and their gradients lie as (key, query), as
in ``tiles.py``; all five products are sums held in registers. A block and a tile are copied to
memory of the thread's own first, filled up with zeros: there, rows lie side by side, and widths and
lengths come in whole vectors. ``dk`` and ``dv`` of a block stay there until all tiles have been;
``dq`` is added up in place. Nobody else writes to any of them, and every sum has its order: the
bits depend on nothing but the head. If several heads share keys, each has a ``dk`` and ``dv`` of
its own, which the last of them to finish adds up.

In order: a thread's memory, one tile over one block of keys, one head, and the function that is
called from outside.
"""
# numba's decorators have no types, and what its vectors are is known to LLVM alone.
# mypy: disable-error-code="untyped-decorator, no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import carray, njit

from clearhead.attention.kernels.tile_copies import (
    clear,
    copy_rows,
    dot,
    gather_rows,
    padded,
    transpose,
)
from clearhead.attention.kernels.tile_product import (
    FLOAT_BYTES,
    LINE,
    LINE_BYTES,
    ROWS,
    VECTOR_BYTES,
    VECTORS,
    add_product,
    put_product,
)
from clearhead.attention.kernels.tiles import capped
from clearhead.kernels.compiling import INLINED
from clearhead.kernels.exponential import exp_nonpositive
from clearhead.kernels.memory import add_one, load_floats, put_float, store_floats
from clearhead.kernels.operations import LANES
from clearhead.kernels.threads import thread_functions
from clearhead.kernels.vectors import (
    broadcast,
    divide,
    multiply,
    no_floats,
    smaller,
    subtract,
    zero_outside,
)

if TYPE_CHECKING:
    from clearhead.attention.tile_gradients import Work

KEYS = 128  # of a block: weights and their gradients take 32 KB, a block of width 64 as much
COUNT_BYTES = 8
STATE_LINES = 2  # log-sum-exps, and the sums of gradient times output

# Numbers. They are float32, because a Python float would drag the computation to float64.
ONE = np.float32(1)


# A thread's memory: a block of keys, a tile of queries, and what they have together.
@njit(**INLINED)
def block_places(work: Work, memory: int) -> Any:
    """Addresses of a block's keys and values and of their gradients; and where they end."""
    key_bytes, value_bytes = KEYS * padded(work.key_dim), KEYS * padded(work.value_dim)
    values = memory + key_bytes
    to_keys = values + value_bytes
    to_values = to_keys + key_bytes
    return memory, values, to_keys, to_values, to_values + value_bytes


@njit(**INLINED)
def tile_places(work: Work, memory: int) -> Any:
    """Addresses of a tile's queries, their output's gradients and their own, the first two as
    (column, query) too; log-sum-exps; and, block by tile, weights and their gradients."""
    key_bytes, value_bytes = LINE * padded(work.key_dim), LINE * padded(work.value_dim)
    gradients = memory + key_bytes
    to_queries = gradients + value_bytes
    queries_across = to_queries + key_bytes
    gradients_across = queries_across + key_bytes
    state = gradients_across + value_bytes
    weights = state + STATE_LINES * LINE_BYTES
    slopes = weights + KEYS * LINE_BYTES
    return memory, gradients, to_queries, queries_across, gradients_across, state, weights, slopes


# One tile over one block of keys.
@njit(**INLINED)
def weigh(work: Work, weights: int, slopes: int, state: int, count: int, softcap: bool) -> None:
    """Scores become weights, and their gradients gradients of scores: all of them visible."""
    scales, caps = broadcast(work.scale), broadcast(work.softcap)
    for v in range(VECTORS):
        logsum = load_floats(state + v * VECTOR_BYTES)
        sums = load_floats(state + LINE_BYTES + v * VECTOR_BYTES)
        for at in range(v * VECTOR_BYTES, count * LINE_BYTES, LINE_BYTES):
            score = load_floats(weights + at)
            factor = scales
            if softcap:
                score = capped(score, caps)
                share = divide(score, caps)
                factor = multiply(scales, subtract(broadcast(ONE), multiply(share, share)))
            weight = exp_nonpositive(smaller(subtract(score, logsum), no_floats()))
            store_floats(weights + at, weight)
            slope = subtract(load_floats(slopes + at), sums)
            store_floats(slopes + at, multiply(multiply(weight, slope), factor))


@njit(**INLINED)
def hide(work: Work, weights: int, slopes: int, first: int, start: int, count: int) -> None:
    """0 for what the tile's queries from ``first`` on do not see of keys from ``start`` on."""
    standing = first + work.offset
    queries = min(LINE, work.queries - first)
    for j in range(start, start + count):
        low = min(max(j - work.after - standing, 0), LINE)
        high = min(max(j + work.before - standing + 1, 0), queries) if j < work.keys else 0
        for v in range(VECTORS):
            at = (j - start) * LINE_BYTES + v * VECTOR_BYTES
            inside, outside = low - v * LANES, high - v * LANES
            store_floats(weights + at, zero_outside(load_floats(weights + at), inside, outside))
            store_floats(slopes + at, zero_outside(load_floats(slopes + at), inside, outside))


@njit(**INLINED)
def is_hiding(work: Work, first: int, start: int, stop: int) -> bool:
    """True if one of the tile's queries does not see all keys start … stop − 1, or is none."""
    standing = first + work.offset
    return (
        stop > work.keys
        or first + LINE > work.queries
        or stop - 1 > standing + work.after
        or start < standing + LINE - 1 - work.before
    )


@njit(**INLINED)
def products(tile: int, left: int, row_bytes: int, terms: int, right: int, count: int) -> None:
    """tile[j, :] = Σₙ left[j, n]·right[n, :] for so many rows."""
    for j in range(0, count, ROWS):
        put_product(
            tile + j * LINE_BYTES, LINE_BYTES, left + j * row_bytes, row_bytes, FLOAT_BYTES,
            terms, right, LINE_BYTES,
        )  # fmt: skip


@njit(**INLINED)
def add_to_block(block: int, row_bytes: int, weights: int, rows: int, count: int) -> None:
    """block[j, :] += Σ weights[j, query]·rows[query, :] for so many keys."""
    for d in range(0, row_bytes, LINE_BYTES):
        for j in range(0, count, ROWS):
            add_product(
                block + j * row_bytes + d, row_bytes, weights + j * LINE_BYTES, LINE_BYTES,
                FLOAT_BYTES, LINE, rows + d, row_bytes,
            )  # fmt: skip


@njit(**INLINED)
def put_queries(tile: int, row_bytes: int, slopes: int, keys: int, count: int) -> None:
    """tile[query, :] = Σ slopes[j, query]·keys[j, :] over so many keys."""
    for d in range(0, row_bytes, LINE_BYTES):
        for q in range(0, LINE, ROWS):
            put_product(
                tile + q * row_bytes + d, row_bytes, slopes + q * FLOAT_BYTES, FLOAT_BYTES,
                LINE_BYTES, count, keys + d, row_bytes,
            )  # fmt: skip


@njit(**INLINED)
def copy_tile(work: Work, memory: int, head: Any, first: int) -> None:
    """What the tile needs of the queries from ``first`` on."""
    query, gradient, _, logsum, sums = head
    queries, gradients, _, across, gradients_across, state, _, _ = tile_places(work, memory)
    key_row, value_row = padded(work.key_dim), padded(work.value_dim)
    count = min(LINE, work.queries - first)
    row = work.query_row * FLOAT_BYTES
    copy_rows(queries, key_row, LINE, query + first * row, row, count, work.key_dim)
    row = work.gradient_row * FLOAT_BYTES
    copy_rows(gradients, value_row, LINE, gradient + first * row, row, count, work.value_dim)
    copy_rows(state, LINE_BYTES, 1, logsum + first * FLOAT_BYTES, 0, 1, count)
    copy_rows(state + LINE_BYTES, LINE_BYTES, 1, sums + first * FLOAT_BYTES, 0, 1, count)
    transpose(across, queries, key_row, work.scale)
    transpose(gradients_across, gradients, value_row, ONE)


@njit(**INLINED)
def differentiate_tile(
    work: Work, memory: int, head: Any, first: int, start: int, stop: int
) -> None:
    """The tile of the queries from ``first`` on over the block of keys start … stop − 1."""
    key_row, value_row = padded(work.key_dim), padded(work.value_dim)
    standing = first + work.offset
    seen = min(LINE, work.queries - first)
    low = max(start, (standing - work.before) // ROWS * ROWS) - start
    high = min(stop, standing + seen + work.after) - start
    if high <= low:
        return
    count = (high - low + ROWS - 1) // ROWS * ROWS
    keys, values, to_keys, to_values, tile = block_places(work, memory)
    copy_tile(work, tile, head, first)
    places = tile_places(work, tile)
    queries, gradients, to_queries, across, gradients_across, state, weights, slopes = places
    products(weights, keys + low * key_row, key_row, work.key_dim, across, count)
    products(slopes, values + low * value_row, value_row, work.value_dim, gradients_across, count)
    if work.softcap > 0:
        weigh(work, weights, slopes, state, count, True)
    else:
        weigh(work, weights, slopes, state, count, False)
    if is_hiding(work, first, start + low, start + low + count):
        hide(work, weights, slopes, first, start + low, count)
    add_to_block(to_values + low * value_row, value_row, weights, gradients, count)
    add_to_block(to_keys + low * key_row, key_row, slopes, queries, count)
    put_queries(to_queries, key_row, slopes, keys + low * key_row, count)
    row = work.to_query_row * FLOAT_BYTES
    gather_rows(head[2] + first * row, row, to_queries, key_row, seen, work.key_dim, False)


# One head.
@njit(**INLINED)
def place(start: int, batch: int, batch_step: int, head: int, head_step: int) -> int:
    """The address of one head of a tensor."""
    return start + (batch * batch_step + head * head_step) * FLOAT_BYTES


@njit(**INLINED)
def put_sums(work: Work, sums: int, gradient: int, output: int) -> None:
    """For every query the sum of gradient times output."""
    for q in range(work.queries):
        row = gradient + q * work.gradient_row * FLOAT_BYTES
        other = output + q * work.output_row * FLOAT_BYTES
        put_float(sums + q * FLOAT_BYTES, dot(row, other, work.value_dim))


@njit(**INLINED)
def differentiate_block(
    work: Work, memory: int, head: Any, kv_head: Any, start: int, stop: int
) -> None:
    """One block of a head's keys, over all tiles that see some of it."""
    key, value, to_key, to_value = kv_head
    keys, values, to_keys, to_values, end = block_places(work, memory)
    key_row, value_row = padded(work.key_dim), padded(work.value_dim)
    count = stop - start
    row = work.key_row * FLOAT_BYTES
    copy_rows(keys, key_row, KEYS, key + start * row, row, count, work.key_dim)
    row = work.value_row * FLOAT_BYTES
    copy_rows(values, value_row, KEYS, value + start * row, row, count, work.value_dim)
    clear(to_keys, end)
    low = max(0, start - work.after - work.offset) // LINE * LINE
    high = min(work.queries, stop + work.before - work.offset)
    for first in range(low, high, LINE):
        differentiate_tile(work, memory, head, first, start, stop)
    row = work.to_key_row * FLOAT_BYTES
    gather_rows(to_key + start * row, row, to_keys, key_row, count, work.key_dim, True)
    row = work.to_value_row * FLOAT_BYTES
    gather_rows(to_value + start * row, row, to_values, value_row, count, work.value_dim, True)


@njit(**INLINED)
def differentiate_head(work: Work, memory: int, batch: int, number: int) -> None:
    """All keys of one head, block after block."""
    shared = number // (work.heads // work.kv_heads)
    query = place(work.query, batch, work.query_batch, number, work.query_head)
    output = place(work.output, batch, work.output_batch, number, work.output_head)
    gradient = place(work.gradient, batch, work.gradient_batch, number, work.gradient_head)
    to_query = place(work.to_query, batch, work.to_query_batch, number, work.to_query_head)
    logsum = place(work.logsum, batch, work.heads * work.queries, number, work.queries)
    sums = place(work.sums, batch, work.heads * work.queries, number, work.queries)
    put_sums(work, sums, gradient, output)
    head = (query, gradient, to_query, logsum, sums)
    kv_head = (
        place(work.key, batch, work.key_batch, shared, work.key_head),
        place(work.value, batch, work.value_batch, shared, work.value_head),
        place(work.to_key, batch, work.to_key_batch, number, work.to_key_head),
        place(work.to_value, batch, work.to_value_batch, number, work.to_value_head),
    )
    for start in range(0, work.keys, KEYS):
        stop = min(start + KEYS, work.keys)
        differentiate_block(work, memory, head, kv_head, start, stop)


@njit(**INLINED)
def add_up(work: Work, batch: int, shared: int) -> None:
    """The gradients of keys and values that several heads share, head after head."""
    group = work.heads // work.kv_heads
    keys = place(work.shared_key, batch, work.shared_key_batch, shared, work.shared_key_head)
    values = place(
        work.shared_value, batch, work.shared_value_batch, shared, work.shared_value_head
    )
    for number in range(shared * group, (shared + 1) * group):
        is_first = number == shared * group
        gather_rows(
            keys, work.shared_key_row * FLOAT_BYTES,
            place(work.to_key, batch, work.to_key_batch, number, work.to_key_head),
            work.to_key_row * FLOAT_BYTES, work.keys, work.key_dim, is_first,
        )  # fmt: skip
        gather_rows(
            values, work.shared_value_row * FLOAT_BYTES,
            place(work.to_value, batch, work.to_value_batch, number, work.to_value_head),
            work.to_value_row * FLOAT_BYTES, work.keys, work.value_dim, is_first,
        )  # fmt: skip


# What is called from outside.
thread_number, _ = thread_functions()


def differentiate(works: Any) -> None:
    """One thread's work: heads that nobody has taken."""
    work = carray(works, 1)[0]
    memory = work.scratch + np.int64(thread_number()) * work.scratch_bytes
    group = work.heads // work.kv_heads
    taken = add_one(work.taken)
    while taken < work.batch * work.heads:
        batch, head = taken // work.heads, taken % work.heads
        differentiate_head(work, memory, batch, head)
        if group > 1:
            shared = batch * work.kv_heads + head // group
            if add_one(work.finished + shared * COUNT_BYTES) == group - 1:
                add_up(work, batch, head // group)
        taken = add_one(work.taken)
