"""The engine's step: tokens through all layers, in one compiled function on torch's threads.

    states = embedding of the tokens
    for each layer: states += attention(norm(states)); states += feed_forward(norm(states))
    logits = head(norm(states))

Threads share out rows of matrices, heads and chunks of keys, phase by phase (see
engine_threads_kernel.py). Nothing is allocated.
"""
# numba's decorators have no types, and what its vectors are is known to LLVM alone.
# mypy: disable-error-code="untyped-decorator, no-any-return"

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, types

from clearhead.generation.engine_attention_kernel import (
    attend,
    attention_units,
    merge_token,
    place_and_remember,
)
from clearhead.generation.engine_matrix_kernel import BYTES_4, BYTES_8, multiply_tile
from clearhead.generation.engine_numbers_kernel import (
    INLINED,
    ONE,
    ZERO,
    activated,
    quantise,
    quantise_group,
)
from clearhead.generation.engine_parts_kernel import (
    attention_at,
    compiled,
    compiled_parts,
    feed_forward_at,
    matrix_at,
    norm_at,
    part,
    step_at,
)
from clearhead.generation.engine_structures import (
    BLOCK,
    CHUNK,
    GROUP,
    TILE,
    UNIT_BYTES,
    Attention,
    FeedForward,
)
from clearhead.generation.engine_threads_kernel import (
    finish,
    next_unit,
    thread_count,
    thread_number,
    wait,
)
from clearhead.generation.engine_vectors_kernel import (
    byte_at,
    float_at,
    half_at,
    integer_at,
    load_floats,
    minus,
    multiply_add,
    no_floats,
    plus,
    put_float,
    spread,
    store_floats,
    sum_of,
    times,
)

ATTENTION_BYTES, FEED_FORWARD_BYTES = ctypes.sizeof(Attention), ctypes.sizeof(FeedForward)
HEADS_AT_ONCE = 6  # of queries, or of keys and values
SCORES_BYTES = 4 * 4 * CHUNK
RESULTS_BYTES = 2 * BLOCK * TILE * 4
HIDDEN_BYTES = BLOCK * GROUP * 4
# A thread's own memory: scores, results of tiles, hidden units, then one token's floats.
SCRATCH_BYTES = SCORES_BYTES + RESULTS_BYTES + HIDDEN_BYTES


# Embedding and normalisation.
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


# Matrices with what follows them.
@njit(**INLINED)
def biased(matrix: Any, tile: int, result: int) -> Any:
    """16 results, with their bias."""
    found = load_floats(result)
    if matrix.bias != 0:
        found = plus(found, load_floats(matrix.bias + 64 * tile))
    return found


@part
def tiles_at_once(matrix_address: int, tokens: int) -> int:
    """How many tiles make a unit of work."""
    matrix = matrix_at(matrix_address)
    bytes_of_tile = matrix.groups * (BYTES_4 if matrix.bits == 4 else BYTES_8)
    return max(1, UNIT_BYTES // (bytes_of_tile * tokens))


@part
def project_tiles(
    matrix_address: int, first: int, last: int, inputs: int, stride: int, tokens: int,
    target: int, target_row: int, results: int,
) -> None:  # fmt: skip
    """Some tiles of target = matrix · inputs + bias, for each token."""
    matrix = matrix_at(matrix_address)
    for tile in range(first, min(last, matrix.tiles)):
        for start in range(0, tokens, BLOCK):
            count = min(BLOCK, tokens - start)
            place = inputs + start * stride
            multiply_tile(matrix_address, tile, place, stride, count, results)
            for token in range(count):
                place = target + (start + token) * target_row + 64 * tile
                store_floats(place, biased(matrix, tile, results + 64 * token))


@part
def add_projected_tiles(
    step_address: int, matrix_address: int, first: int, last: int, inputs: int, stride: int,
    base: int, results: int,
) -> None:  # fmt: skip
    """Some tiles of states = base + matrix · inputs + bias."""
    step, matrix = step_at(step_address), matrix_at(matrix_address)
    for tile in range(first, min(last, matrix.tiles)):
        multiply_tile(matrix_address, tile, inputs, stride, step.tokens, results)
        for token in range(step.tokens):
            place = 4 * token * step.model_width + 64 * tile
            added = biased(matrix, tile, results + 64 * token)
            store_floats(step.states + place, plus(load_floats(base + place), added))


@part
def hidden_tile(
    step_address: int, matrix_address: int, tile: int, inputs: int, results: int, units: int
) -> None:
    """16 units of activation(gate) · up, or of activation(up), for each token."""
    step, matrix = step_at(step_address), matrix_at(matrix_address)
    stride, tokens = step.input_bytes, step.tokens
    gated = step.gated != 0
    gate, up = (2 * tile, 2 * tile + 1) if gated else (tile, tile)
    second = results + RESULTS_BYTES // 2
    multiply_tile(matrix_address, gate, inputs, stride, tokens, results)
    if gated:
        multiply_tile(matrix_address, up, inputs, stride, tokens, second)
    for token in range(tokens):
        unit = activated(biased(matrix, gate, results + 64 * token), step.activation)
        if gated:
            unit = times(unit, biased(matrix, up, second + 64 * token))
        store_floats(units + 128 * token, unit)


@part
def hidden_group(
    step_address: int, matrix_address: int, group: int, inputs: int, results: int
) -> None:
    """32 units of the hidden layer, quantised."""
    step = step_at(step_address)
    units = results + RESULTS_BYTES
    hidden_tile(step_address, matrix_address, 2 * group, inputs, results, units)
    hidden_tile(step_address, matrix_address, 2 * group + 1, inputs, results, units + 64)
    for token in range(step.tokens):
        place = units + 128 * token
        record = step.hidden + token * step.hidden_bytes
        groups = step.hidden_width // GROUP
        quantise_group(load_floats(place), load_floats(place + 64), record, groups, group)


@part
def prepare_token(step_address: int, norm: int, token: int, normed: int, record: int) -> None:
    """Normalise a token's state (norm 0: as it is) and quantise it."""
    step = step_at(step_address)
    state = step.states + 4 * token * step.model_width
    if norm != 0:
        normalise(step, norm_at(norm), state, normed)
        state = normed
    quantise(state, record, step.model_width // GROUP)


# Phases: all units of one kind of work. They return the number of the next phase.
@part
def project(
    step_address: int, matrix: int, inputs: int, tokens: int, target: int, target_row: int,
    results: int, phase: int, thread: int, threads: int,
) -> int:  # fmt: skip
    """Target = matrix · inputs + bias, for each token."""
    step = step_at(step_address)
    stride = step.input_bytes
    span = tiles_at_once(matrix, tokens)
    units = (matrix_at(matrix).tiles + span - 1) // span
    unit = next_unit(step.tickets, phase, units, thread, threads)
    while unit >= 0:
        first = unit * span
        project_tiles(
            matrix, first, first + span, inputs, stride, tokens, target, target_row, results
        )
        finish(step.tickets, phase, threads)
        unit = next_unit(step.tickets, phase, units, thread, threads)
    return wait(step.tickets, phase, units, threads)


@part
def add_projected(
    step_address: int, matrix: int, inputs: int, stride: int, base: int,
    results: int, phase: int, thread: int, threads: int,
) -> int:  # fmt: skip
    """States = base + matrix · inputs + bias."""
    step = step_at(step_address)
    span = tiles_at_once(matrix, step.tokens)
    units = (matrix_at(matrix).tiles + span - 1) // span
    unit = next_unit(step.tickets, phase, units, thread, threads)
    while unit >= 0:
        first = unit * span
        add_projected_tiles(
            step_address, matrix, first, first + span, inputs, stride, base, results
        )
        finish(step.tickets, phase, threads)
        unit = next_unit(step.tickets, phase, units, thread, threads)
    return wait(step.tickets, phase, units, threads)


@part
def hide(
    step_address: int, matrix: int, inputs: int, results: int,
    phase: int, thread: int, threads: int,
) -> int:  # fmt: skip
    """The hidden layer of the feed-forward."""
    step = step_at(step_address)
    units = step.hidden_width // GROUP
    unit = next_unit(step.tickets, phase, units, thread, threads)
    while unit >= 0:
        hidden_group(step_address, matrix, unit, inputs, results)
        finish(step.tickets, phase, threads)
        unit = next_unit(step.tickets, phase, units, thread, threads)
    return wait(step.tickets, phase, units, threads)


@part
def prepare(step_address: int, norm: int, phase: int, thread: int, threads: int) -> int:
    """Every token's state normalised and quantised, for all threads."""
    step = step_at(step_address)
    token = next_unit(step.tickets, phase, step.tokens, thread, threads)
    while token >= 0:
        normed = step.normed + 4 * token * step.model_width
        prepare_token(step_address, norm, token, normed, step.inputs + token * step.input_bytes)
        finish(step.tickets, phase, threads)
        token = next_unit(step.tickets, phase, step.tokens, thread, threads)
    return wait(step.tickets, phase, step.tokens, threads)


@part
def place(step_address: int, attention: int, phase: int, thread: int, threads: int) -> int:
    """Every token's queries and keys turned; keys and values put into the cache."""
    step = step_at(step_address)
    heads = step.tokens * (step.heads + step.kv_heads)
    units = (heads + HEADS_AT_ONCE - 1) // HEADS_AT_ONCE
    unit = next_unit(step.tickets, phase, units, thread, threads)
    while unit >= 0:
        first = unit * HEADS_AT_ONCE
        last = min(heads, first + HEADS_AT_ONCE)
        place_and_remember(step_address, attention, first, last)
        finish(step.tickets, phase, threads)
        unit = next_unit(step.tickets, phase, units, thread, threads)
    return wait(step.tickets, phase, units, threads)


@part
def attend_to_all(
    step_address: int, attention: int, scratch: int, phase: int, thread: int, threads: int
) -> int:
    """Every query over all that it sees."""
    step = step_at(step_address)
    units = attention_units(step_address, attention)
    unit = next_unit(step.tickets, phase, units, thread, threads)
    while unit >= 0:
        attend(step_address, attention, unit, scratch)
        finish(step.tickets, phase, threads)
        unit = next_unit(step.tickets, phase, units, thread, threads)
    return wait(step.tickets, phase, units, threads)


@part
def merge(step_address: int, attention: int, phase: int, thread: int, threads: int) -> int:
    """Every token's heads side by side, quantised, for all threads."""
    step = step_at(step_address)
    token = next_unit(step.tickets, phase, step.tokens, thread, threads)
    while token >= 0:
        mixed = step.mixed + 4 * token * step.heads * step.value_width
        record = step.inputs + token * step.input_bytes
        merge_token(step_address, attention, token, mixed, record)
        finish(step.tickets, phase, threads)
        token = next_unit(step.tickets, phase, step.tokens, thread, threads)
    return wait(step.tickets, phase, step.tokens, threads)


# The layers. What is little work for one token every thread does for itself, unless the result is
# needed longer than for the next phase: a thread that was away has not got it.
@part
def attention_layer(
    step_address: int, attention_address: int, scratch: int, phase: int, thread: int, threads: int
) -> int:
    """States += attention(norm(states)), or for post-norm states = norm(states) + attention(…)."""
    step, attention = step_at(step_address), attention_at(attention_address)
    results, own = scratch + SCORES_BYTES, scratch + SCRATCH_BYTES
    inputs, own_inputs = step.inputs, own + step.private_bytes // 2
    if step.tokens == 1 and step.post_norm == 0:
        inputs = own_inputs
        prepare_token(step_address, attention.norm, 0, own, inputs)
    else:
        phase = prepare(step_address, attention.norm, phase, thread, threads)
    phase = project(
        step_address, attention.project, inputs, step.tokens, step.projected,
        4 * step.projected_width, results, phase, thread, threads,
    )  # fmt: skip
    if attention.cross == 0:
        phase = place(step_address, attention_address, phase, thread, threads)
    phase = attend_to_all(step_address, attention_address, scratch, phase, thread, threads)
    inputs = step.inputs
    if step.tokens == 1:
        inputs = own_inputs
        merge_token(step_address, attention_address, 0, own, inputs)
    else:
        phase = merge(step_address, attention_address, phase, thread, threads)
    base = step.normed if step.post_norm != 0 and attention.norm != 0 else step.states
    return add_projected(
        step_address, attention.output, inputs, step.input_bytes, base,
        results, phase, thread, threads,
    )  # fmt: skip


@part
def feed_forward_layer(
    step_address: int, layer_address: int, scratch: int, phase: int, thread: int, threads: int
) -> int:
    """States += feed_forward(norm(states)), or the same for post-norm."""
    step, layer = step_at(step_address), feed_forward_at(layer_address)
    results, own = scratch + SCORES_BYTES, scratch + SCRATCH_BYTES
    inputs = step.inputs
    if step.tokens == 1 and step.post_norm == 0:
        inputs = own + step.private_bytes // 2
        prepare_token(step_address, layer.norm, 0, own, inputs)
    else:
        phase = prepare(step_address, layer.norm, phase, thread, threads)
    phase = hide(step_address, layer.up, inputs, results, phase, thread, threads)
    base = step.normed if step.post_norm != 0 else step.states
    return add_projected(
        step_address, layer.down, step.hidden, step.hidden_bytes, base,
        results, phase, thread, threads,
    )  # fmt: skip


@part
def logits(step_address: int, scratch: int, phase: int, thread: int, threads: int) -> None:
    """Logits of the tokens that are wanted."""
    step = step_at(step_address)
    results, own = scratch + SCORES_BYTES, scratch + SCRATCH_BYTES
    index = next_unit(step.tickets, phase, step.wanted, thread, threads)
    while index >= 0:
        token = integer_at(step.wanted_tokens + 8 * index)
        record = step.inputs + index * step.input_bytes
        prepare_token(step_address, step.final_norm, token, own, record)
        finish(step.tickets, phase, threads)
        index = next_unit(step.tickets, phase, step.wanted, thread, threads)
    phase = wait(step.tickets, phase, step.wanted, threads)
    project(
        step_address, step.head, step.inputs, step.wanted, step.logits, step.logits_row,
        results, phase, thread, threads,
    )  # fmt: skip


PHASES_OF_ATTENTION, PHASES_OF_FEED_FORWARD, PHASES_AROUND = 6, 3, 3  # at most


@part
def embed_all(step_address: int, thread: int, threads: int) -> int:
    """Every token's first state."""
    step = step_at(step_address)
    token = next_unit(step.tickets, 0, step.tokens, thread, threads)
    while token >= 0:
        embed(step_address, token)
        finish(step.tickets, 0, threads)
        token = next_unit(step.tickets, 0, step.tokens, thread, threads)
    return wait(step.tickets, 0, step.tokens, threads)


def run_step(step_address: int) -> None:
    """What each thread does: its share of everything."""
    step = step_at(step_address)
    thread, threads = np.int64(thread_number()), np.int64(thread_count())
    scratch = step.private + thread * (SCRATCH_BYTES + step.private_bytes)
    phase = embed_all(step_address, thread, threads)
    attention, feed_forward = step.attentions, step.feed_forwards
    for _ in range(step.layers):
        for _ in range(2 if step.cross != 0 else 1):
            phase = attention_layer(step_address, attention, scratch, phase, thread, threads)
            attention += ATTENTION_BYTES
        phase = feed_forward_layer(step_address, feed_forward, scratch, phase, thread, threads)
        feed_forward += FEED_FORWARD_BYTES
    if step.wanted > 0:
        logits(step_address, scratch, phase, thread, threads)


def step_function(tell: Callable[[int, int], None]) -> int:
    """The address of the compiled step; ``tell(done, total)`` says which part is next."""
    compiled_parts(tell)
    return int(compiled(run_step, types.void(types.int64)).address)
