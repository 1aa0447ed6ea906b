"""Blocks of a call: a run of queries with the keys that they can reach.

Masks and biases are only ever spelled out for one block, so memory grows linearly with length; keys
that a window or the causal mask puts out of reach are never multiplied.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from clearhead.attention.call import CAUSAL, Call
from clearhead.attention.steps import steps_of

BLOCK_NUMBERS = 1 << 22  # numbers of the map that are spelled out at once: 16 MB in float32
SHORTEST_BLOCK, LONGEST_BLOCK = 128, 512  # queries


def is_one_block(call: Call) -> bool:
    """True if the kernel knows the mask itself: none, or causal over as many keys as queries."""
    if call.bias is not None:
        return False
    return call.mask is None or (call.mask is CAUSAL and call.query.shape[2] == call.key.shape[2])


def blocks(call: Call) -> Iterator[tuple[slice, slice, bool, Tensor | None]]:
    """Runs of queries with the keys they reach: rows, columns, causal?, what to add to scores."""
    if is_one_block(call):
        yield slice(None), slice(None), call.mask is not None, None
        return
    queries, length = call.query.shape[2], block_length(call)
    for start in range(0, queries, length):
        rows = range(start, min(start + length, queries))
        columns, added = added_to_scores(call, rows)
        if len(columns):
            yield slice(rows.start, rows.stop), slice(columns.start, columns.stop), False, added


def added_to_scores(call: Call, rows: range) -> tuple[range, Tensor | None]:
    """The keys in reach of these queries, and mask and bias as one tensor to add to the scores."""
    columns, seen, bias = call.block(rows)
    if bias is not None and bias.dtype != call.query.dtype:
        # Beside half-precision states the kernel also takes a float32 bias: nothing is rounded.
        bias = bias.to(torch.promote_types(call.query.dtype, torch.float32))
    if seen is None:
        return columns, None if bias is None else bias.detach()
    zero = call.query.new_zeros(()) if bias is None else bias.detach()
    return columns, torch.where(seen, zero, -torch.inf)


def block_length(call: Call, heads_at_once: int = 1) -> int:
    """How many queries to a block: about as many as the keys that one of them reaches."""
    middle = range(call.query.shape[2] // 2, call.query.shape[2] // 2 + 1)
    columns, seen, bias = call.block(middle)
    spelled = max(
        1, 0 if seen is None else seen.numel(), 0 if bias is None else bias.numel(), len(columns)
    )
    affordable = BLOCK_NUMBERS // (spelled * heads_at_once)
    return max(1, min(affordable, LONGEST_BLOCK, max(len(columns), SHORTEST_BLOCK)))


def plain_blocks(call: Call) -> Tensor:
    """The plain steps, block after block; for the gradient each block is computed again."""
    queries = call.query.shape[2]
    length = block_length(call, heads_at_once=call.query.shape[0] * call.query.shape[1])
    runs = [range(start, min(start + length, queries)) for start in range(0, queries, length)]
    if call.wants_gradient:
        parts = (call.narrowed(rows) for rows in runs)
        kept = [checkpoint(plain_output, part, use_reentrant=False) for part in parts]
        return torch.cat(kept, dim=2)
    # Written into one tensor: small results kept between large temporary ones would pin the heap.
    output = call.query.new_empty(*call.query.shape[:3], call.value.shape[3])
    for rows in runs:
        output[:, :, rows.start : rows.stop] = plain_output(call.narrowed(rows))
    return output


def plain_gradients(call: Call, gradient: Tensor) -> tuple[Tensor | None, ...]:
    """Gradients of query, key, value and sinks by operations that autograd records: they can be
    differentiated again, as no kernel's can."""
    # Views, because one tensor may be query, key and value at once: each has its own gradient.
    inputs = tuple(
        None if tensor is None else tensor.view_as(tensor)
        for tensor in (call.query, call.key, call.value, call.sinks)
    )
    query, key, value, sinks = inputs
    assert query is not None and key is not None and value is not None
    call = replace(call, query=query, key=key, value=value, sinks=sinks)
    learning = [tensor for tensor in inputs if tensor is not None and tensor.requires_grad]
    found = iter(torch.autograd.grad(plain_blocks(call), learning, gradient, create_graph=True))
    return tuple(
        next(found) if tensor is not None and tensor.requires_grad else None for tensor in inputs
    )


def plain_output(call: Call) -> Tensor:
    """(batch, head, query, value_dim), whatever axes the caller gave."""
    return steps_of(replace(call, leading=call.query.shape[:1], headless=False)).output
