"""Rotary positions and the KV cache: normalise and rotate queries and keys, store keys and values.

The cache holds half-precision numbers. Keys are stored in blocks of 32, column by column: a lane
is a key, and scores need no sum across lanes. Values are stored in chunks of 128 keys, in each
chunk 32 columns of all keys, then the next 32: a lane is a column. Both are read sequentially.
"""
# numba's decorators have no types, and only LLVM knows the type of a vector.
# mypy: disable-error-code="untyped-decorator, no-any-return"

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from clearhead.engine.kernels.numbers import ONE, ZERO
from clearhead.engine.kernels.parts import attention_at, part, step_at
from clearhead.engine.kernels.structures import CHUNK, COLUMNS, KEYS, TILE
from clearhead.kernels.compiling import INLINED
from clearhead.kernels.memory import (
    float_at,
    integer_at,
    load_floats,
    put_float,
    put_half,
    store_halves,
)
from clearhead.kernels.vectors import add, broadcast, multiply, multiply_add, no_floats, sum_of

# 65,520, the first number that half precision rounds to infinity, times this is beyond float32.
FROM_LARGEST_HALF = np.float32(2.0**127 / 32_760)


@njit(**INLINED)
def zero_or_nan_above(vector: int, width: int, factor: Any) -> Any:
    """0 if factor times every number is finite, NaN otherwise."""
    total = no_floats()
    for i in range(0, width, TILE):
        scaled = multiply(load_floats(vector + 4 * i), broadcast(factor))
        total = multiply_add(scaled, broadcast(ZERO), total)
    return sum_of(total)


@njit(**INLINED)
def normalise_head(head: int, width: int, weight: int, epsilon: Any) -> None:
    """Apply RMSNorm to one head, in place."""
    total = ZERO
    for i in range(width):
        total += float_at(head + 4 * i) * float_at(head + 4 * i)
    factor = ONE / np.float32(math.sqrt(total / np.float32(width) + epsilon))
    for i in range(width):
        put_float(head + 4 * i, float_at(head + 4 * i) * factor * float_at(weight + 4 * i))


@njit(**INLINED)
def rotate_head(head: int, rotation: int, pairs: int) -> None:
    """Rotate pairs (i, i + pairs) in place; ``rotation`` holds cosines, then sines."""
    for i in range(pairs):
        first, second = float_at(head + 4 * i), float_at(head + 4 * (i + pairs))
        cos, sin = float_at(rotation + 4 * i), float_at(rotation + 4 * (i + pairs))
        put_float(head + 4 * i, first * cos - second * sin)
        put_float(head + 4 * (i + pairs), second * cos + first * sin)


@njit(**INLINED)
def normalise_and_rotate(step: Any, head: int, norm: int, rotary: int, position: int) -> None:
    """Normalise and rotate the query or key of one head, in place."""
    if norm != 0:
        normalise_head(head, step.key_dim, norm, step.epsilon)
    if rotary != 0:
        rotation = rotary + position * step.rotary_pairs * 8
        rotate_head(head, rotation, step.rotary_pairs)


@njit(**INLINED)
def query_at(step: Any, token: int, head: int) -> int:
    """Address of the query of one head."""
    return step.projected + 4 * (token * step.projected_width + head * step.key_width)


@njit(**INLINED)
def store_key_value(
    step: Any, attention: Any, row: int, position: int, kv_head: int, token: int
) -> None:
    """Rotate a token's key, and store key and value in the cache.

    The softmax of scores loses NaN, so a key that half precision cannot hold makes its value NaN.
    """
    kv = step.projected + 4 * (token * step.projected_width + step.heads * step.key_width)
    key = kv + 4 * kv_head * step.key_width
    value = kv + 4 * (step.kv_heads * step.key_width + kv_head * step.value_width)
    normalise_and_rotate(step, key, attention.key_norm, attention.rotary, position)
    place = position % attention.room
    keys = attention.keys + row * attention.key_row + kv_head * attention.key_head
    keys += 2 * (place // KEYS * KEYS * step.key_width + place % KEYS)
    for i in range(step.key_width):
        put_half(keys + 2 * KEYS * i, float_at(key + 4 * i))
    unheld = broadcast(zero_or_nan_above(key, step.key_width, FROM_LARGEST_HALF))
    values = attention.values + row * attention.value_row + kv_head * attention.value_head
    values += 2 * (place // CHUNK * CHUNK * step.value_width + place % CHUNK * COLUMNS)
    for column in range(0, step.value_width, COLUMNS):
        target, source = values + 2 * column * CHUNK, value + 4 * column
        store_halves(target, add(load_floats(source), unheld))
        store_halves(target + 2 * TILE, add(load_floats(source + 4 * TILE), unheld))


@part
def rotate_and_store(step_address: int, attention_address: int, first: int, last: int) -> None:
    """Rotate queries and keys, store keys and values: heads first … last − 1 of all tokens.

    Heads are counted token by token: the query heads, then the key/value heads.
    """
    step, attention = step_at(step_address), attention_at(attention_address)
    heads = step.heads + step.kv_heads
    for task in range(first, last):
        token, head = task // heads, task % heads
        position = integer_at(step.positions + 8 * token)
        if head < step.heads:
            query = query_at(step, token, head)
            normalise_and_rotate(step, query, attention.query_norm, attention.rotary, position)
        else:
            row = integer_at(step.rows + 8 * token)
            store_key_value(step, attention, row, position, head - step.heads, token)
