"""A check on a few rows: the formula must give the weights that the model itself computed."""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.trace.watching.observed_call import ObservedCall

TOLERANCE = {torch.float16: 2e-2, torch.bfloat16: 3e-2}  # of weights that the model rounded


def matches_model(observed: ObservedCall) -> bool:
    """True if the first, a middle and the last row of all heads equal the model's own weights."""
    weights = observed.weights
    if weights is None or not _fits(observed):
        return False
    queries, keys = observed.sizes
    heads = observed.query.shape[1]
    if weights.ndim == 3 and weights.shape[0] % heads == 0:
        weights = weights.view(-1, heads, *weights.shape[1:])
    if weights.ndim != 4 or weights.shape[:3] != observed.query.shape[:3]:
        return False
    limit = TOLERANCE.get(observed.query.dtype, 1e-4)
    for row in sorted({0, queries // 2, queries - 1}):
        ours = _row(observed, row)
        theirs = weights[:, :, row, :keys].to(ours.dtype)
        if observed.after_dropout and observed.dropout:
            ours = torch.where(theirs == 0, 0.0, ours / (1 - observed.dropout))
        if ours.shape != theirs.shape or not bool((ours - theirs).abs().max() <= limit):
            return False
    return True


def _fits(observed: ObservedCall) -> bool:
    query, key = observed.query, observed.key
    if query.ndim != 4 or key.ndim != 4 or query.shape[3] != key.shape[3]:
        return False
    return query.shape[0] == key.shape[0] and query.shape[1] % key.shape[1] == 0


def _row(observed: ObservedCall, row: int) -> Tensor:
    """The weights of one row, (batch, head, key), by the formula."""
    wide = torch.promote_types(observed.query.dtype, torch.float32)
    query = observed.query[:, :, row : row + 1].detach().to(wide)
    key = observed.key.detach().to(wide)
    group = query.shape[1] // key.shape[1]
    grouped = query.reshape(
        query.shape[0], -1, group, query.shape[3]
    )  # (batch, kv_head, group, key_dim)
    scores = (grouped @ key.transpose(2, 3)).flatten(1, 2) * observed.scale
    if observed.softcap is not None:
        scores = observed.softcap * torch.tanh(scores / observed.softcap)
    added = observed.added(range(row, row + 1))
    if added is not None:
        scores = scores + added[:, :, 0]
    if observed.sinks is not None:
        sink = observed.sinks.detach().to(wide)[:, None].expand(*scores.shape[:2], 1)
        return torch.softmax(torch.cat([scores, sink], dim=-1), dim=-1)[..., :-1]
    return torch.softmax(scores, dim=-1).nan_to_num(0.0)
