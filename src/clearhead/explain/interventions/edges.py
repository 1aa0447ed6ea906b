"""Edges of attention: what one query of a head takes from single keys, weight · v."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from clearhead.attention.call import Call
from clearhead.attention.masks import Block, Mask
from clearhead.attention.steps import steps_of

ROWS = 512  # queries at a time, so that a long text needs no whole map


def edge_outputs(
    call: Call, row: int, head: int, keys: Sequence[int]
) -> Float[Tensor, "query value_dim"]:
    """For each query of one row of the batch, the sum of weight · v over these keys."""
    one = _one_head(call, row, head)
    queries, total = one.query.shape[2], one.key.shape[2]
    wanted = torch.zeros(total, dtype=torch.bool, device=call.query.device)
    wanted[list(keys)] = True
    parts = []
    for start in range(0, queries, ROWS):
        rows = range(start, min(start + ROWS, queries))
        reach = one.block(rows)[0]
        narrow = one.narrowed(rows)
        weights = steps_of(narrow).weights[0, 0]  # (query, reach)
        chosen = wanted[reach.start : reach.stop]
        parts.append(weights[:, chosen] @ narrow.value[0, 0, chosen])
    return torch.cat(parts)


def _one_head(call: Call, row: int, head: int) -> Call:
    """The part of a call that computes one head of one row."""
    shared = head // call.group
    bias = call.bias
    if bias is not None:
        bias = bias[row : row + 1] if bias.shape[0] > 1 else bias
        bias = bias[:, head : head + 1] if bias.shape[1] > 1 else bias
    return replace(
        call,
        query=call.query[row : row + 1, head : head + 1],
        key=call.key[row : row + 1, shared : shared + 1],
        value=call.value[row : row + 1, shared : shared + 1],
        bias=bias,
        sinks=None if call.sinks is None else call.sinks[head : head + 1],
        mask=None if call.mask is None else _of_one(call.mask, row, head),
        leading=torch.Size([1]),
        headless=False,
    )


def _of_one(mask: Mask, row: int, head: int) -> Mask:
    """The mask of one head of one row."""

    def rule(block: Block) -> Tensor:
        seen = mask.rule(block)
        seen = seen.reshape(*(1,) * (4 - seen.ndim), *seen.shape)
        seen = seen[row] if seen.shape[0] > 1 else seen[0]
        return seen[head] if seen.shape[0] > 1 else seen[0]

    return Mask(rule=rule, reach=mask.reach, full=mask.full, band=mask.band)
