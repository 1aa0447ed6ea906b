"""The phases of a step: all units of one kind of work, shared out to the threads.

Each returns the number of the next phase (see engine_threads_kernel.py).
"""
# numba's decorators have no types, and what its vectors are is known to LLVM alone.
# mypy: disable-error-code="untyped-decorator, no-any-return"

from __future__ import annotations

from clearhead.generation.engine_attention_kernel import attend, attention_units, merge_token
from clearhead.generation.engine_parts_kernel import matrix_at, part, step_at
from clearhead.generation.engine_placing_kernel import place_and_remember
from clearhead.generation.engine_projection_kernel import (
    add_projected_tiles,
    hidden_group,
    project_tiles,
    tiles_at_once,
)
from clearhead.generation.engine_state_kernel import embed, prepare_token
from clearhead.generation.engine_structures import GROUP, HEADS_AT_ONCE
from clearhead.generation.engine_threads_kernel import finish, next_unit, wait


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
