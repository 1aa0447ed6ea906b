"""The engine's step: tokens through all layers, in one compiled function on torch's threads.

    states = embedding of the tokens
    for each layer: states += attention(norm(states)); states += feed_forward(norm(states))
    logits = head(norm(states))

Threads share out rows of matrices, heads and chunks of keys, phase by phase (see
engine_phases_kernel.py). Nothing is allocated.
"""
# numba's decorators have no types, and what its vectors are is known to LLVM alone.
# mypy: disable-error-code="untyped-decorator, no-any-return"

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
from numba import types

from clearhead.attention.addresses_kernel import integer_at
from clearhead.attention.compiled_kernel import compiled
from clearhead.generation.engine_attention_kernel import merge_token
from clearhead.generation.engine_parts_kernel import (
    attention_at,
    compiled_parts,
    feed_forward_at,
    part,
    step_at,
)
from clearhead.generation.engine_phases_kernel import (
    add_projected,
    attend_to_all,
    embed_all,
    hide,
    merge,
    place,
    prepare,
    project,
)
from clearhead.generation.engine_state_kernel import prepare_token
from clearhead.generation.engine_structures import (
    SCORES_BYTES,
    SCRATCH_BYTES,
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

ATTENTION_BYTES, FEED_FORWARD_BYTES = ctypes.sizeof(Attention), ctypes.sizeof(FeedForward)


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
