"""Attention over the KV cache: partial results for each chunk of keys, then their merge.

The keys are split into chunks of 128. For each query and chunk, the largest score m,
Σ exp(s − m) and Σ exp(s − m)·v are stored in ``partials`` until all chunks are merged (the online
softmax of Milakov and Gimelshein, 2018). Chunks are split by key position and merged in order. So
the bits of a query are the same in any batch, on any number of threads, in a prompt and in a step.
"""
# numba's decorators have no types, and only LLVM knows the type of a vector.
# mypy: disable-error-code="untyped-decorator, no-any-return"

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from clearhead.engine.kernels.numbers import MINUS_INFINITY, ONE, ZERO, quantise, sigmoid
from clearhead.engine.kernels.parts import attention_at, part, step_at
from clearhead.engine.kernels.rotate_and_store import query_at, zero_or_nan_above
from clearhead.engine.kernels.structures import CHUNK, COLUMNS, GROUP, KEYS, TILE
from clearhead.kernels.compiling import INLINED
from clearhead.kernels.exponential import exp
from clearhead.kernels.memory import (
    broadcast_float_at,
    fetch_once,
    float_at,
    integer_at,
    load_floats,
    load_halves,
    put_float,
    store_floats,
)
from clearhead.kernels.vectors import (
    add,
    between,
    broadcast,
    larger,
    largest_of,
    multiply,
    multiply_add,
    no_floats,
    subtract,
    sum_of,
)

# A query of 3e30 times this is beyond float32, and so may be its product with keys up to 65,504.
FROM_LARGEST_QUERY = np.float32(1e8)
TWO = np.float32(2)


# Three or four query rows at once over the keys of one chunk: a key or value is loaded once for
# all of them. Three, because many models have three query heads to a key/value head.
def score_rows(four: bool) -> Any:
    """Make the function that computes the scores of three query rows, or of four."""

    def score(
        step_address: int, scores: int, q0: int, q1: int, q2: int, q3: int, keys: int, count: int,
        values: int,
    ) -> None:  # fmt: skip
        """Write the scores of the queries and ``count`` keys, in rows of CHUNK. Meanwhile ask for
        their values."""
        step = step_at(step_address)
        width, scale = step.key_width, broadcast(step.scale)
        for block in range(0, count, KEYS):
            a0, a1, a2, a3 = no_floats(), no_floats(), no_floats(), no_floats()
            b0, b1, b2, b3 = no_floats(), no_floats(), no_floats(), no_floats()
            column = keys + 2 * block * width
            for i in range(width):
                line = column + 2 * KEYS * i
                fetch_once(values + line - keys)
                a, b = load_halves(line), load_halves(line + KEYS)
                q = broadcast_float_at(q0 + 4 * i)
                a0, b0 = multiply_add(a, q, a0), multiply_add(b, q, b0)
                q = broadcast_float_at(q1 + 4 * i)
                a1, b1 = multiply_add(a, q, a1), multiply_add(b, q, b1)
                q = broadcast_float_at(q2 + 4 * i)
                a2, b2 = multiply_add(a, q, a2), multiply_add(b, q, b2)
                if four:
                    q = broadcast_float_at(q3 + 4 * i)
                    a3, b3 = multiply_add(a, q, a3), multiply_add(b, q, b3)
            address = scores + 4 * block
            store_pair(address, multiply(a0, scale), multiply(b0, scale))
            store_pair(address + 4 * CHUNK, multiply(a1, scale), multiply(b1, scale))
            store_pair(address + 8 * CHUNK, multiply(a2, scale), multiply(b2, scale))
            if four:
                store_pair(address + 12 * CHUNK, multiply(a3, scale), multiply(b3, scale))

    score.__name__ = "score_four" if four else "score_three"
    return part(score)


@njit(**INLINED)
def store_pair(address: int, first: Any, second: Any) -> None:
    """Store two vectors: 32 numbers."""
    store_floats(address, first)
    store_floats(address + 64, second)


score_three, score_four = score_rows(False), score_rows(True)


@part
def cap_scores(step_address: int, scores: int, count: int) -> None:
    """Replace the scores of one query by softcap·tanh(score / softcap); tanh y is 2σ(2y) − 1."""
    cap = step_at(step_address).softcap
    for block in range(0, count, TILE):
        score = multiply(load_floats(scores + 4 * block), broadcast(TWO / cap))
        tanh = multiply_add(sigmoid(score), broadcast(TWO), broadcast(-ONE))
        store_floats(scores + 4 * block, multiply(tanh, broadcast(cap)))


@part
def exponentiate(scores: int, first: int, last: int, count: int, statistics: int) -> None:
    """Replace the scores of one query by exp(score − largest), 0 outside first … last − 1.

    The largest score and the sum are written to ``statistics``.
    """
    best = broadcast(MINUS_INFINITY)
    for block in range(0, count, TILE):
        masked = between(load_floats(scores + 4 * block), first - block, last - block)
        best = larger(masked, best)
        store_floats(scores + 4 * block, masked)
    largest = largest_of(best)
    total = no_floats()
    for block in range(0, count, TILE):
        weight = exp(subtract(load_floats(scores + 4 * block), broadcast(largest)))
        total = add(total, weight)
        store_floats(scores + 4 * block, weight)
    put_float(statistics, largest)
    put_float(statistics + 4, sum_of(total))


def mix_rows(four: bool) -> Any:
    """Make the function that mixes values for three query rows, or for four."""

    def mix(
        weights: int, values: int, first: int, last: int, width: int,
        m0: int, m1: int, m2: int, m3: int, next_keys: int,
    ) -> None:  # fmt: skip
        """Write the weighted sums of values for the queries, 32 columns at a time. Meanwhile ask
        for the keys of the next chunk."""
        for column in range(0, width, COLUMNS):
            a0, a1, a2, a3 = no_floats(), no_floats(), no_floats(), no_floats()
            b0, b1, b2, b3 = no_floats(), no_floats(), no_floats(), no_floats()
            for key in range(first, last):
                value = values + 2 * (column * CHUNK + key * COLUMNS)
                a, b = load_halves(value), load_halves(value + 2 * TILE)
                fetch_once(next_keys + value - values)
                weight = weights + 4 * key
                w = broadcast_float_at(weight)
                a0, b0 = multiply_add(a, w, a0), multiply_add(b, w, b0)
                w = broadcast_float_at(weight + 4 * CHUNK)
                a1, b1 = multiply_add(a, w, a1), multiply_add(b, w, b1)
                w = broadcast_float_at(weight + 8 * CHUNK)
                a2, b2 = multiply_add(a, w, a2), multiply_add(b, w, b2)
                if four:
                    w = broadcast_float_at(weight + 12 * CHUNK)
                    a3, b3 = multiply_add(a, w, a3), multiply_add(b, w, b3)
            # in reverse order: past the end of the rows, the last row is computed again
            if four:
                store_pair(m3 + 4 * column, a3, b3)
            store_pair(m2 + 4 * column, a2, b2)
            store_pair(m1 + 4 * column, a1, b1)
            store_pair(m0 + 4 * column, a0, b0)

    mix.__name__ = "mix_four" if four else "mix_three"
    return part(mix)


mix_three, mix_four = mix_rows(False), mix_rows(True)


# The keys that a query may attend to.
@njit(**INLINED)
def key_end(step: Any, attention: Any, token: int) -> int:
    """One more than the position of the last key that a token attends to."""
    if attention.cross != 0:
        return integer_at(step.source_lengths + 8 * integer_at(step.rows + 8 * token))
    return integer_at(step.positions + 8 * token) + 1


@njit(**INLINED)
def key_start(step: Any, attention: Any, token: int) -> int:
    """The position of the first key that a token attends to."""
    if attention.window == 0:
        return 0
    return max(0, integer_at(step.positions + 8 * token) + 1 - attention.window)


# Query row ``index`` of a segment is one head of one token: token-major, heads inside.
@njit(**INLINED)
def partial_at(step: Any, token: int, head: int, chunk: int) -> int:
    """Address of a query's partial result for one chunk: mixed values, largest score, sum."""
    index = (token * step.heads + head) * step.chunks + chunk
    return step.partials + 4 * index * (step.value_width + TILE)


@part
def attend_four(
    step_address: int, attention_address: int, start: int, rows: int, index: int, kv_head: int,
    chunk: int, keys: int, values: int, scratch: int,
) -> None:  # fmt: skip
    """Attend from query rows index … index + 3 to one chunk; past the end, the last row again."""
    step, attention = step_at(step_address), attention_at(attention_address)
    group = step.heads // step.kv_heads
    i1, i2, i3 = min(index + 1, rows - 1), min(index + 2, rows - 1), min(index + 3, rows - 1)
    t0, h0 = start + index // group, kv_head * group + index % group
    t1, h1 = start + i1 // group, kv_head * group + i1 % group
    t2, h2 = start + i2 // group, kv_head * group + i2 % group
    t3, h3 = start + i3 // group, kv_head * group + i3 % group
    base = chunk * CHUNK
    # positions rise along a segment: the last row has the last key, the first row the first
    last = min(CHUNK, key_end(step, attention, t3) - base)
    first = max(0, key_start(step, attention, t0) - base)
    if last <= 0 or first >= CHUNK:
        return
    first = first // KEYS * KEYS
    count = last - first
    four = rows - index != 3
    scores, chunk_keys = scratch + 4 * first, keys + 2 * first * step.key_width
    # What comes next is asked for once, by the first rows; later ones ask for what is there.
    chunk_values = values + chunk_keys - keys if index == 0 else chunk_keys
    next_keys = keys + 2 * CHUNK * step.key_width if index == 0 else values
    q0, q1 = query_at(step, t0, h0), query_at(step, t1, h1)
    q2, q3 = query_at(step, t2, h2), query_at(step, t3, h3)
    if four:
        score_four(step_address, scores, q0, q1, q2, q3, chunk_keys, count, chunk_values)
    else:
        score_three(step_address, scores, q0, q1, q2, q3, chunk_keys, count, chunk_values)
    p0, p1 = partial_at(step, t0, h0, chunk), partial_at(step, t1, h1, chunk)
    p2, p3 = partial_at(step, t2, h2, chunk), partial_at(step, t3, h3, chunk)
    end = 4 * step.value_width
    origin = base + first
    for row in range(4 if four else 3):
        token = t0 if row == 0 else (t1 if row == 1 else (t2 if row == 2 else t3))
        partial = p0 if row == 0 else (p1 if row == 1 else (p2 if row == 2 else p3))
        if step.softcap > ZERO:
            cap_scores(step_address, scores + 4 * CHUNK * row, count)
        exponentiate(
            scores + 4 * CHUNK * row, key_start(step, attention, token) - origin,
            key_end(step, attention, token) - origin, count, partial + end,
        )  # fmt: skip
    if four:
        mix_four(scratch, values, first, last, step.value_width, p0, p1, p2, p3, next_keys)
    else:
        mix_three(scratch, values, first, last, step.value_width, p0, p1, p2, p3, next_keys)


@njit(**INLINED)
def chunks_of(step: Any, attention: Any, segment: int) -> tuple[int, int]:
    """The first chunk of keys of a segment, and the number of chunks."""
    start = integer_at(step.segment_starts + 8 * segment)
    stop = integer_at(step.segment_starts + 8 * (segment + 1))
    first = key_start(step, attention, start) // CHUNK
    return first, (key_end(step, attention, stop - 1) + CHUNK - 1) // CHUNK - first


@part
def attend_to_chunk(
    step_address: int, attention_address: int, segment: int, chunk: int, kv_head: int, scratch: int
) -> None:
    """Attend from every query row of a segment and key/value head to one chunk."""
    step, attention = step_at(step_address), attention_at(attention_address)
    start = integer_at(step.segment_starts + 8 * segment)
    stop = integer_at(step.segment_starts + 8 * (segment + 1))
    row = integer_at(step.rows + 8 * start)
    rows = (stop - start) * (step.heads // step.kv_heads)
    place = chunk * CHUNK % attention.room
    keys = attention.keys + row * attention.key_row + kv_head * attention.key_head
    keys += 2 * place * step.key_width
    values = attention.values + row * attention.value_row + kv_head * attention.value_head
    values += 2 * place * step.value_width
    for index in range(0, rows, 4):
        attend_four(
            step_address, attention_address, start, rows, index, kv_head, chunk, keys, values,
            scratch,
        )  # fmt: skip


@part
def attention_units(step_address: int, attention_address: int) -> int:
    """The number of units of work of one attention layer."""
    step, attention = step_at(step_address), attention_at(attention_address)
    units = 0
    for segment in range(step.segments):
        units += chunks_of(step, attention, segment)[1] * step.kv_heads
    return units


@part
def attend(step_address: int, attention_address: int, unit: int, scratch: int) -> None:
    """Do one unit of work: one segment, key/value head and chunk."""
    step, attention = step_at(step_address), attention_at(attention_address)
    rest, segment = unit, 0
    first, count = chunks_of(step, attention, 0)
    while rest >= count * step.kv_heads:
        rest -= count * step.kv_heads
        segment += 1
        first, count = chunks_of(step, attention, segment)
    kv_head, chunk = rest // count, first + rest % count
    attend_to_chunk(step_address, attention_address, segment, chunk, kv_head, scratch)


@njit(**INLINED)
def merge_head(step: Any, attention: Any, token: int, head: int, target: int) -> tuple[Any, Any]:
    """Merge the partial results of all chunks into one head's output.

    The softmax of scores loses NaN, so a query that could make NaN makes the output NaN. Returns
    the largest score m and Σ exp(s − m): the log-sum-exp is m + log of the sum.
    """
    width = step.value_width
    first = key_start(step, attention, token) // CHUNK
    last = (key_end(step, attention, token) + CHUNK - 1) // CHUNK
    largest = MINUS_INFINITY
    for chunk in range(first, last):
        largest = max(largest, float_at(partial_at(step, token, head, chunk) + 4 * width))
    total = no_floats()
    for column in range(0, width, TILE):
        store_floats(target + 4 * column, no_floats())
    for chunk in range(first, last):
        partial = partial_at(step, token, head, chunk)
        weight = exp(subtract(broadcast_float_at(partial + 4 * width), broadcast(largest)))
        total = multiply_add(weight, broadcast_float_at(partial + 4 * width + 4), total)
        for column in range(0, width, TILE):
            address = target + 4 * column
            store_floats(
                address,
                multiply_add(weight, load_floats(partial + 4 * column), load_floats(address)),
            )
    query = query_at(step, token, head)
    factor = ONE / largest_of(total) + zero_or_nan_above(query, step.key_width, FROM_LARGEST_QUERY)
    for column in range(0, width, TILE):
        address = target + 4 * column
        store_floats(address, multiply(load_floats(address), broadcast(factor)))
    return largest, largest_of(total)


@njit(**INLINED)
def keep_head(
    step: Any, attention: Any, token: int, head: int, mixed: int, largest: Any, total: Any
) -> None:
    """Keep a head's query, output, largest score and sum for whoever watches."""
    key_width, value_width = step.key_width, step.value_width
    target = attention.seen + (step.seen_first + token) * step.seen_row
    target += 4 * head * (key_width + value_width + TILE)
    query = query_at(step, token, head)
    for i in range(0, key_width, TILE):
        store_floats(target + 4 * i, load_floats(query + 4 * i))
    for i in range(0, value_width, TILE):
        store_floats(target + 4 * (key_width + i), load_floats(mixed + 4 * i))
    put_float(target + 4 * (key_width + value_width), largest)
    put_float(target + 4 * (key_width + value_width + 1), total)


@part
def merge_token(
    step_address: int, attention_address: int, token: int, mixed: int, vectors: int
) -> None:
    """Merge all heads of a token, concatenate and quantise them: one of all tokens' vectors."""
    step, attention = step_at(step_address), attention_at(attention_address)
    for head in range(step.heads):
        # the zeros that pad a head are overwritten by the next one
        target = mixed + 4 * head * step.value_dim
        largest, total = merge_head(step, attention, token, head, target)
        if step.seen_row != 0:
            keep_head(step, attention, token, head, target, largest, total)
    width = step.heads * step.value_dim
    groups = (width + GROUP - 1) // GROUP
    for i in range(width, GROUP * groups):
        put_float(mixed + 4 * i, ZERO)
    quantise(mixed, vectors, groups, token, step.tokens)
