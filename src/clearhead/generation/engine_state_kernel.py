"""A token's state: its embedding, normalised and quantised for the next matrix."""
# numba's decorators have no types, and what its vectors are is known to LLVM alone.
# mypy: disable-error-code="untyped-decorator, no-any-return"

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from clearhead.attention.addresses_kernel import (
    byte_at,
    float_at,
    half_at,
    integer_at,
    load_floats,
    put_float,
    store_floats,
)
from clearhead.attention.compiled_kernel import INLINED
from clearhead.attention.vectors_kernel import (
    minus,
    multiply_add,
    no_floats,
    plus,
    spread,
    sum_of,
    times,
)
from clearhead.generation.engine_matrix_kernel import BYTES_4, BYTES_8
from clearhead.generation.engine_numbers_kernel import ONE, ZERO, quantise
from clearhead.generation.engine_parts_kernel import matrix_at, norm_at, part, step_at
from clearhead.generation.engine_structures import GROUP, TILE


@njit(**INLINED)
def weight_at(matrix: Any, row: int, column: int) -> Any:
    """One weight of a matrix."""
    tile, lane = row // TILE, row % TILE
    group, place = column // GROUP, column % GROUP
    quad, byte = place // 4, place % 4
    if matrix.bits == 8:
        start = matrix.weights + (tile * matrix.groups + group) * BYTES_8
        stored = byte_at(start + 32 + 64 * quad + 4 * lane + byte) - 128
        return half_at(start + 2 * lane) * np.float32(stored)
    start = matrix.weights + (tile * matrix.groups + group) * BYTES_4
    packed = byte_at(start + 64 + 64 * (quad % 4) + 4 * lane + byte)
    nibble = packed >> 4 if quad >= 4 else packed & 15
    return half_at(start + 2 * lane) * np.float32(nibble) + half_at(start + 32 + 2 * lane)


@njit(**INLINED)
def normalise(step: Any, norm: Any, source: int, target: int) -> None:
    """RMSNorm or LayerNorm of one token's state; padding stays 0, as its weights are."""
    width = np.float32(step.model)
    mean = ZERO
    if step.rms == 0:
        total = no_floats()
        for i in range(0, step.model_width, TILE):
            total = plus(total, load_floats(source + 4 * i))
        mean = sum_of(total) / width
    squares = no_floats()
    for i in range(0, step.model_width, TILE):
        apart = minus(load_floats(source + 4 * i), spread(mean))
        squares = multiply_add(apart, apart, squares)
    # the padding is 0, so its distance from the mean must not count
    extra = np.float32(step.model_width - step.model) * mean * mean
    variance = (sum_of(squares) - extra) / width
    factor = ONE / np.float32(math.sqrt(variance + step.epsilon))
    for i in range(0, step.model_width, TILE):
        apart = minus(load_floats(source + 4 * i), spread(mean))
        scaled = times(times(apart, spread(factor)), load_floats(norm.weight + 4 * i))
        if norm.bias != 0:
            scaled = plus(scaled, load_floats(norm.bias + 4 * i))
        store_floats(target + 4 * i, scaled)


@part
def embed(step_address: int, token: int) -> None:
    """A token's embedding and position, as its first state."""
    step = step_at(step_address)
    matrix = matrix_at(step.embedding)
    row, place = integer_at(step.ids + 8 * token), integer_at(step.places + 8 * token)
    state = step.states + 4 * token * step.model_width
    for i in range(step.model_width):
        value = weight_at(matrix, row, i) * step.embedding_scale
        if step.positions != 0:
            value += float_at(step.positions + 4 * (place * step.model_width + i))
        put_float(state + 4 * i, value)
    if step.embedding_norm != 0:
        normalise(step, norm_at(step.embedding_norm), state, state)


@part
def prepare_token(step_address: int, norm: int, token: int, normed: int, record: int) -> None:
    """Normalise a token's state (norm 0: as it is) and quantise it."""
    step = step_at(step_address)
    state = step.states + 4 * token * step.model_width
    if norm != 0:
        normalise(step, norm_at(norm), state, normed)
        state = normed
    quantise(state, record, step.model_width // GROUP)
