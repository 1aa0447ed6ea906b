"""Queries and keys before they meet: normalised, turned by their positions, put into the cache.

The cache holds half-precision numbers. Keys lie in blocks of 32, column by column, so that a lane
is a key and scores need no sum across lanes. Values lie in chunks, and in each chunk 32 columns of
all keys after the other 32, so that a lane is a column. Both are read from one end to the other.
"""
# numba's decorators have no types, and what its vectors are is known to LLVM alone.
# mypy: disable-error-code="untyped-decorator, no-any-return"

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from clearhead.attention.addresses_kernel import (
    float_at,
    integer_at,
    load_floats,
    put_float,
    put_half,
    store_halves,
)
from clearhead.attention.compiled_kernel import INLINED
from clearhead.generation.engine_numbers_kernel import ONE, ZERO
from clearhead.generation.engine_parts_kernel import attention_at, part, step_at
from clearhead.generation.engine_structures import CHUNK, COLUMNS, KEYS, TILE


@njit(**INLINED)
def normalise_head(head: int, width: int, weight: int, epsilon: Any) -> None:
    """Bring a head's numbers to a root mean square of 1, then weight them."""
    total = ZERO
    for i in range(width):
        total += float_at(head + 4 * i) * float_at(head + 4 * i)
    factor = ONE / np.float32(math.sqrt(total / np.float32(width) + epsilon))
    for i in range(width):
        put_float(head + 4 * i, float_at(head + 4 * i) * factor * float_at(weight + 4 * i))


@njit(**INLINED)
def turn_head(head: int, rotation: int, pairs: int) -> None:
    """Turn pairs (i, i + pairs) by the angles of ``rotation``: cosines, then sines."""
    for i in range(pairs):
        first, second = float_at(head + 4 * i), float_at(head + 4 * (i + pairs))
        cos, sin = float_at(rotation + 4 * i), float_at(rotation + 4 * (i + pairs))
        put_float(head + 4 * i, first * cos - second * sin)
        put_float(head + 4 * (i + pairs), second * cos + first * sin)


@njit(**INLINED)
def place_head(step: Any, head: int, norm: int, rotary: int, place: int) -> None:
    """A head's query or key as it meets the others."""
    if norm != 0:
        normalise_head(head, step.key_dim, norm, step.epsilon)
    if rotary != 0:
        rotation = rotary + place * step.rotary_pairs * 8
        turn_head(head, rotation, step.rotary_pairs)


@njit(**INLINED)
def query_at(step: Any, token: int, head: int) -> int:
    """A head's query."""
    return step.projected + 4 * (token * step.projected_width + head * step.key_width)


@njit(**INLINED)
def remember(step: Any, attention: Any, row: int, place: int, kv_head: int, token: int) -> None:
    """Put a token's key and value into the cache."""
    kv = step.projected + 4 * (token * step.projected_width + step.heads * step.key_width)
    key = kv + 4 * kv_head * step.key_width
    value = kv + 4 * (step.kv_heads * step.key_width + kv_head * step.value_width)
    place_head(step, key, attention.key_norm, attention.rotary, place)
    keys = attention.keys + row * step.key_row + kv_head * step.key_head
    keys += 2 * (place // KEYS * KEYS * step.key_width + place % KEYS)
    for i in range(step.key_width):
        put_half(keys + 2 * KEYS * i, float_at(key + 4 * i))
    values = attention.values + row * step.value_row + kv_head * step.value_head
    values += 2 * (place // CHUNK * CHUNK * step.value_width + place % CHUNK * COLUMNS)
    for column in range(0, step.value_width, COLUMNS):
        target, source = values + 2 * column * CHUNK, value + 4 * column
        store_halves(target, load_floats(source))
        store_halves(target + 2 * TILE, load_floats(source + 4 * TILE))


@part
def place_and_remember(step_address: int, attention_address: int, first: int, last: int) -> None:
    """Queries and keys turned, keys and values put into the cache: for some heads of some tokens,
    counted token by token, first the query heads, then those of keys and values."""
    step, attention = step_at(step_address), attention_at(attention_address)
    parts = step.heads + step.kv_heads
    for task in range(first, last):
        token, head = task // parts, task % parts
        place = integer_at(step.places + 8 * token)
        if head < step.heads:
            query = query_at(step, token, head)
            place_head(step, query, attention.query_norm, attention.rotary, place)
        else:
            row = integer_at(step.rows + 8 * token)
            remember(step, attention, row, place, head - step.heads, token)
