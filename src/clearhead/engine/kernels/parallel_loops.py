"""Parallel loops, the phases of a step: all units of one kind of work, divided among threads.

Each function is one phase and returns the index of the next (see threads.py).
"""
# numba's decorators have no types, and only LLVM knows the type of a vector.
# mypy: disable-error-code="untyped-decorator, no-any-return"

from __future__ import annotations

from clearhead.engine.kernels.attention import attend, attention_units, merge_token
from clearhead.engine.kernels.hidden_states import add_normalised, embed, normalise_and_quantise
from clearhead.engine.kernels.parts import matrix_at, part, step_at
from clearhead.engine.kernels.projection import (
    add_projected_tiles,
    groups_per_unit,
    hidden_groups,
    project_tiles,
    tiles_per_unit,
)
from clearhead.engine.kernels.rotate_and_store import rotate_and_store
from clearhead.engine.kernels.structures import GROUP, HEADS_PER_UNIT
from clearhead.engine.kernels.threads import finish, next_unit, wait


@part
def embed_all(step_address: int, thread: int, threads: int) -> int:
    """Embed every token."""
    step = step_at(step_address)
    token = next_unit(step.counters, 0, step.tokens, thread, threads)
    while token >= 0:
        embed(step_address, token)
        finish(step.counters, 0, thread, threads)
        token = next_unit(step.counters, 0, step.tokens, thread, threads)
    return wait(step.counters, 0, step.tokens, threads)


@part
def project(
    step_address: int, matrix: int, inputs: int, tokens: int,
    target: int, target_row: int, results: int, phase: int, thread: int, threads: int,
) -> int:  # fmt: skip
    """Compute target = matrix · inputs + bias, for each token."""
    step = step_at(step_address)
    span = tiles_per_unit(matrix, tokens)
    units = (matrix_at(matrix).all_tiles + span - 1) // span
    unit = next_unit(step.counters, phase, units, thread, threads)
    while unit >= 0:
        first = unit * span
        project_tiles(matrix, first, first + span, inputs, tokens, target, target_row, results)
        finish(step.counters, phase, thread, threads)
        unit = next_unit(step.counters, phase, units, thread, threads)
    return wait(step.counters, phase, units, threads)


@part
def add_projected(
    step_address: int, matrix: int, inputs: int, base: int, results: int,
    phase: int, thread: int, threads: int,
) -> int:  # fmt: skip
    """Compute states = base + matrix · inputs + bias."""
    step = step_at(step_address)
    span = tiles_per_unit(matrix, step.tokens)
    units = (matrix_at(matrix).tiles + span - 1) // span
    unit = next_unit(step.counters, phase, units, thread, threads)
    while unit >= 0:
        first = unit * span
        add_projected_tiles(step_address, matrix, first, first + span, inputs, base, results)
        finish(step.counters, phase, thread, threads)
        unit = next_unit(step.counters, phase, units, thread, threads)
    return wait(step.counters, phase, units, threads)


@part
def add_normalised_all(step_address: int, norm: int, phase: int, thread: int, threads: int) -> int:
    """Normalise what a layer adds to each token's hidden state, and add it."""
    step = step_at(step_address)
    token = next_unit(step.counters, phase, step.tokens, thread, threads)
    while token >= 0:
        add_normalised(step_address, norm, token)
        finish(step.counters, phase, thread, threads)
        token = next_unit(step.counters, phase, step.tokens, thread, threads)
    return wait(step.counters, phase, step.tokens, threads)


@part
def hidden_layer(
    step_address: int, layer: int, inputs: int, results: int,
    phase: int, thread: int, threads: int,
) -> int:  # fmt: skip
    """Compute the hidden layer of the feed-forward network."""
    step = step_at(step_address)
    groups, span = step.hidden_width // GROUP, groups_per_unit(step_address, layer, threads)
    units = (groups + span - 1) // span
    unit = next_unit(step.counters, phase, units, thread, threads)
    while unit >= 0:
        first = unit * span
        hidden_groups(step_address, layer, first, first + span, inputs, results)
        finish(step.counters, phase, thread, threads)
        unit = next_unit(step.counters, phase, units, thread, threads)
    return wait(step.counters, phase, units, threads)


@part
def normalise_and_quantise_all(
    step_address: int, norm: int, phase: int, thread: int, threads: int
) -> int:
    """Normalise and quantise the hidden state of every token, for all threads."""
    step = step_at(step_address)
    token = next_unit(step.counters, phase, step.tokens, thread, threads)
    while token >= 0:
        normed = step.normed + 4 * token * step.model_width
        normalise_and_quantise(step_address, norm, token, normed, step.inputs, token, step.tokens)
        finish(step.counters, phase, thread, threads)
        token = next_unit(step.counters, phase, step.tokens, thread, threads)
    return wait(step.counters, phase, step.tokens, threads)


@part
def rotate_and_store_all(
    step_address: int, attention: int, phase: int, thread: int, threads: int
) -> int:
    """Rotate the queries and keys of every token; store keys and values in the cache."""
    step = step_at(step_address)
    heads = step.tokens * (step.heads + step.kv_heads)
    units = (heads + HEADS_PER_UNIT - 1) // HEADS_PER_UNIT
    unit = next_unit(step.counters, phase, units, thread, threads)
    while unit >= 0:
        first = unit * HEADS_PER_UNIT
        last = min(heads, first + HEADS_PER_UNIT)
        rotate_and_store(step_address, attention, first, last)
        finish(step.counters, phase, thread, threads)
        unit = next_unit(step.counters, phase, units, thread, threads)
    return wait(step.counters, phase, units, threads)


@part
def attend_all(
    step_address: int, attention: int, scratch: int, phase: int, thread: int, threads: int
) -> int:
    """Compute the partial results of attention of every query."""
    step = step_at(step_address)
    units = attention_units(step_address, attention)
    unit = next_unit(step.counters, phase, units, thread, threads)
    while unit >= 0:
        attend(step_address, attention, unit, scratch)
        finish(step.counters, phase, thread, threads)
        unit = next_unit(step.counters, phase, units, thread, threads)
    return wait(step.counters, phase, units, threads)


@part
def merge_all(step_address: int, attention: int, phase: int, thread: int, threads: int) -> int:
    """Merge and quantise the heads of every token, for all threads."""
    step = step_at(step_address)
    token = next_unit(step.counters, phase, step.tokens, thread, threads)
    while token >= 0:
        mixed = step.mixed + 4 * token * step.mixed_width
        merge_token(step_address, attention, token, mixed, step.inputs)
        finish(step.counters, phase, thread, threads)
        token = next_unit(step.counters, phase, step.tokens, thread, threads)
    return wait(step.counters, phase, step.tokens, threads)
