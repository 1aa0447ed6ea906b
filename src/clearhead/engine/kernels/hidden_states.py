"""Hidden states: token embeddings, normalisation, quantisation for the next matrix."""
# numba's decorators have no types, and only LLVM knows the type of a vector.
# mypy: disable-error-code="untyped-decorator, no-any-return"

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from clearhead.engine.kernels.interleaving import take_row
from clearhead.engine.kernels.numbers import ONE, ZERO, quantise
from clearhead.engine.kernels.parts import matrix_at, norm_at, part, step_at
from clearhead.engine.kernels.structures import GROUP, TILE
from clearhead.kernels.compiling import INLINED
from clearhead.kernels.memory import (
    call_with_three,
    integer_at,
    load_floats,
    store_floats,
)
from clearhead.kernels.vectors import (
    add,
    broadcast,
    multiply,
    multiply_add,
    no_floats,
    subtract,
    sum_of,
)


@njit(**INLINED)
def normalise(step: Any, norm: Any, source: int, target: int) -> None:
    """RMSNorm or LayerNorm of one hidden state; padding stays 0, since its weights are 0."""
    width = np.float32(step.model)
    mean = ZERO
    if step.rms == 0:
        total = no_floats()
        for i in range(0, step.model_width, TILE):
            total = add(total, load_floats(source + 4 * i))
        mean = sum_of(total) / width
    squares = no_floats()
    for i in range(0, step.model_width, TILE):
        centred = subtract(load_floats(source + 4 * i), broadcast(mean))
        squares = multiply_add(centred, centred, squares)
    # the padding is 0: subtract what it adds to the sum of squares
    extra = np.float32(step.model_width - step.model) * mean * mean
    variance = (sum_of(squares) - extra) / width
    factor = ONE / np.float32(math.sqrt(variance + step.epsilon))
    for i in range(0, step.model_width, TILE):
        centred = subtract(load_floats(source + 4 * i), broadcast(mean))
        scaled = multiply(multiply(centred, broadcast(factor)), load_floats(norm.weight + 4 * i))
        if norm.bias != 0:
            scaled = add(scaled, load_floats(norm.bias + 4 * i))
        store_floats(target + 4 * i, scaled)


@part
def embed(step_address: int, token: int) -> None:
    """Write a token's embedding, plus its position embedding, as its first hidden state."""
    step = step_at(step_address)
    matrix = matrix_at(step.embedding)
    row, position = integer_at(step.ids + 8 * token), integer_at(step.positions + 8 * token)
    state = step.states + 4 * token * step.model_width
    blocks = step.normed + 4 * token * step.model_width  # nobody needs it yet
    take_row(matrix, row, blocks)
    call_with_three(matrix.unpack, blocks, matrix.unpack_count, state)
    for i in range(0, step.model_width, TILE):
        value = multiply(load_floats(state + 4 * i), broadcast(step.embedding_scale))
        if step.position_table != 0:
            table = step.position_table + 4 * (position * step.model_width + i)
            value = add(value, load_floats(table))
        store_floats(state + 4 * i, value)
    if step.embedding_norm != 0:
        normalise(step, norm_at(step.embedding_norm), state, state)


@part
def add_normalised(step_address: int, norm: int, token: int) -> None:
    """Normalise what a layer adds to a token's hidden state, and add it."""
    step = step_at(step_address)
    added = step.normed + 4 * token * step.model_width
    state = step.states + 4 * token * step.model_width
    normalise(step, norm_at(norm), added, added)
    for i in range(0, step.model_width, TILE):
        total = add(load_floats(state + 4 * i), load_floats(added + 4 * i))
        store_floats(state + 4 * i, total)


@part
def normalise_and_quantise(
    step_address: int, norm: int, token: int, normed: int, vectors: int, place: int, places: int
) -> None:
    """Normalise (unless ``norm`` is 0) and quantise a token's hidden state, as vector ``place`` of
    ``places``."""
    step = step_at(step_address)
    state = step.states + 4 * token * step.model_width
    if norm != 0:
        normalise(step, norm_at(norm), state, normed)
        state = normed
    quantise(state, vectors, step.model_width // GROUP, place, places)
