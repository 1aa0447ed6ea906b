"""The engine's step: tokens through all layers, in one compiled function on torch's threads.

    states = embedding of the tokens
    for each layer: states += attention(norm(states)); states += feed_forward(norm(states))
    logits = head(norm(states))

In each phase the threads divide rows of matrices, heads or chunks of keys among themselves (see
parallel_loops.py). Nothing is allocated.
"""
# numba's decorators have no types, and only LLVM knows the type of a vector.
# mypy: disable-error-code="untyped-decorator, no-any-return"

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
from numba import types

from clearhead.engine.kernels.attention import merge_token
from clearhead.engine.kernels.hidden_states import normalise_and_quantise
from clearhead.engine.kernels.parallel_loops import (
    add_normalised_all,
    add_projected,
    attend_all,
    embed_all,
    hidden_layer,
    merge_all,
    normalise_and_quantise_all,
    project,
    rotate_and_store_all,
)
from clearhead.engine.kernels.parts import (
    attention_at,
    compiled_parts,
    feed_forward_at,
    part,
    step_at,
)
from clearhead.engine.kernels.structures import (
    SCORES_BYTES,
    SCRATCH_BYTES,
    Attention,
    FeedForward,
)
from clearhead.engine.kernels.threads import (
    finish,
    next_unit,
    thread_count,
    thread_number,
    wait,
)
from clearhead.kernels.compiling import compiled
from clearhead.kernels.memory import integer_at

ATTENTION_BYTES, FEED_FORWARD_BYTES = ctypes.sizeof(Attention), ctypes.sizeof(FeedForward)


# The layers. Work that is small for one token is done by every thread for itself, unless the result
# is needed after the next phase: a thread that lost its core would not have it.
@part
def add_to_states(
    step_address: int, matrix: int, after_norm: int, inputs: int, base: int, results: int,
    phase: int, thread: int, threads: int,
) -> int:  # fmt: skip
    """Compute states = base + matrix · inputs; with a norm states += norm(matrix · inputs)."""
    step = step_at(step_address)
    if after_norm == 0:
        return add_projected(step_address, matrix, inputs, base, results, phase, thread, threads)
    phase = project(
        step_address, matrix, inputs, step.tokens, step.normed, 4 * step.model_width,
        results, phase, thread, threads,
    )  # fmt: skip
    return add_normalised_all(step_address, after_norm, phase, thread, threads)


@part
def attention_layer(
    step_address: int, attention_address: int, scratch: int, phase: int, thread: int, threads: int
) -> int:
    """Compute states += attention(norm(states)); post-norm: norm(states) + attention(…); sandwich:
    states += norm(attention(norm(states)))."""
    step, attention = step_at(step_address), attention_at(attention_address)
    results, own = scratch + SCORES_BYTES, scratch + SCRATCH_BYTES
    inputs, own_inputs = step.inputs, own + step.private_bytes // 2
    if step.tokens == 1 and step.post_norm == 0:
        inputs = own_inputs
        normalise_and_quantise(step_address, attention.norm, 0, own, inputs, 0, 1)
    else:
        phase = normalise_and_quantise_all(step_address, attention.norm, phase, thread, threads)
    phase = project(
        step_address, attention.project, inputs, step.tokens, step.projected,
        4 * step.projected_width, results, phase, thread, threads,
    )  # fmt: skip
    if attention.cross == 0:
        phase = rotate_and_store_all(step_address, attention_address, phase, thread, threads)
    phase = attend_all(step_address, attention_address, scratch, phase, thread, threads)
    inputs = step.inputs
    # Who watches gets one thread's result: a late thread may read what the next layer wrote.
    if step.tokens == 1 and step.seen_row == 0:
        inputs = own_inputs
        merge_token(step_address, attention_address, 0, own, inputs)
    else:
        phase = merge_all(step_address, attention_address, phase, thread, threads)
    base = step.normed if step.post_norm != 0 and attention.norm != 0 else step.states
    return add_to_states(
        step_address, attention.output, attention.after_norm, inputs, base, results,
        phase, thread, threads,
    )  # fmt: skip


@part
def feed_forward_layer(
    step_address: int, layer_address: int, scratch: int, phase: int, thread: int, threads: int
) -> int:
    """Compute states += feed_forward(norm(states)), or the same for the other places of norms."""
    step, layer = step_at(step_address), feed_forward_at(layer_address)
    results, own = scratch + SCORES_BYTES, scratch + SCRATCH_BYTES
    inputs = step.inputs
    if step.tokens == 1 and step.post_norm == 0:
        inputs = own + step.private_bytes // 2
        normalise_and_quantise(step_address, layer.norm, 0, own, inputs, 0, 1)
    else:
        phase = normalise_and_quantise_all(step_address, layer.norm, phase, thread, threads)
    phase = hidden_layer(step_address, layer_address, inputs, results, phase, thread, threads)
    base = step.normed if step.post_norm != 0 else step.states
    return add_to_states(
        step_address, layer.down, layer.after_norm, step.hidden, base, results,
        phase, thread, threads,
    )  # fmt: skip


@part
def logits(step_address: int, scratch: int, phase: int, thread: int, threads: int) -> None:
    """Compute the logits of the output tokens."""
    step = step_at(step_address)
    results, own = scratch + SCORES_BYTES, scratch + SCRATCH_BYTES
    index = next_unit(step.counters, phase, step.outputs, thread, threads)
    while index >= 0:
        token = integer_at(step.output_tokens + 8 * index)
        normalise_and_quantise(
            step_address, step.final_norm, token, own, step.inputs, index, step.outputs
        )
        finish(step.counters, phase, thread, threads)
        index = next_unit(step.counters, phase, step.outputs, thread, threads)
    phase = wait(step.counters, phase, step.outputs, threads)
    project(
        step_address, step.head, step.inputs, step.outputs, step.logits, step.logits_row,
        results, phase, thread, threads,
    )  # fmt: skip


ATTENTION_PHASES, FEED_FORWARD_PHASES, OTHER_PHASES = 7, 4, 3  # upper bounds


def run_step(step_address: int) -> None:
    """Do one thread's share of the step."""
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
    if step.outputs > 0:
        logits(step_address, scratch, phase, thread, threads)


def step_function(report: Callable[[int, int], None]) -> int:
    """Compile the step, or load it; return its address. ``report(done, total)`` is the progress."""
    compiled_parts(report)
    return int(compiled(run_step, types.void(types.int64)).address)
