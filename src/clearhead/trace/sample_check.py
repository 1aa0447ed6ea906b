"""A look at a few rows: does the formula give the weights that the model itself computed?"""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.trace.sighting import Sighting

TOLERANCE = {torch.float16: 2e-2, torch.bfloat16: 3e-2}  # of weights that the model rounded


def agrees(sighting: Sighting) -> bool:
    """Whether the first, a middle and the last row of all heads come out as the model's own."""
    weights = sighting.weights
    if weights is None or not _fits(sighting):
        return False
    queries, keys = sighting.sizes
    heads = sighting.query.shape[1]
    if weights.ndim == 3 and weights.shape[0] % heads == 0:
        weights = weights.view(-1, heads, *weights.shape[1:])
    if weights.ndim != 4 or weights.shape[:3] != sighting.query.shape[:3]:
        return False
    limit = TOLERANCE.get(sighting.query.dtype, 1e-4)
    for row in sorted({0, queries // 2, queries - 1}):
        ours = _row(sighting, row)
        theirs = weights[:, :, row, :keys].to(ours.dtype)
        if sighting.thinned and sighting.dropout:
            ours = torch.where(theirs == 0, 0.0, ours / (1 - sighting.dropout))
        if ours.shape != theirs.shape or not bool((ours - theirs).abs().max() <= limit):
            return False
    return True


def _fits(sighting: Sighting) -> bool:
    query, key = sighting.query, sighting.key
    if query.ndim != 4 or key.ndim != 4 or query.shape[3] != key.shape[3]:
        return False
    return query.shape[0] == key.shape[0] and query.shape[1] % key.shape[1] == 0


def _row(sighting: Sighting, row: int) -> Tensor:
    """The weights of one row, (batch, head, key), by the formula."""
    wide = torch.promote_types(sighting.query.dtype, torch.float32)
    query = sighting.query[:, :, row : row + 1].detach().to(wide)
    key = sighting.key.detach().to(wide)
    group = query.shape[1] // key.shape[1]
    grouped = query.reshape(
        query.shape[0], -1, group, query.shape[3]
    )  # (batch, kv_head, group, key_dim)
    scores = (grouped @ key.transpose(2, 3)).flatten(1, 2) * sighting.scale
    if sighting.softcap is not None:
        scores = sighting.softcap * torch.tanh(scores / sighting.softcap)
    added = sighting.added(range(row, row + 1))
    if added is not None:
        scores = scores + added[:, :, 0]
    if sighting.sinks is not None:
        sink = sighting.sinks.detach().to(wide)[:, None].expand(*scores.shape[:2], 1)
        return torch.softmax(torch.cat([scores, sink], dim=-1), dim=-1)[..., :-1]
    return torch.softmax(scores, dim=-1).nan_to_num(0.0)
