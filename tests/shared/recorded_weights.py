"""What the formula of record.py gives, for comparing with what models compute themselves."""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.trace.record import LayerRecord


def weights_of(record: LayerRecord) -> Tensor:
    """All weights by the formula of record.py, (batch, head, query, key)."""
    facts, query, key = record.facts, record.query, record.key
    wide = torch.promote_types(query.dtype, torch.float32)
    key = key.to(wide).repeat_interleave(query.shape[1] // key.shape[1], dim=1)
    scores = query.to(wide) @ key.transpose(2, 3) * facts.scale
    if facts.softcap is not None:
        scores = facts.softcap * torch.tanh(scores / facts.softcap)
    rows, columns = range(query.shape[2]), range(key.shape[2])
    sequences = []
    for batch in range(query.shape[0]):
        block = scores[batch]
        bias = record.bias(batch, rows, columns)
        block = block if bias is None else block + bias
        weights = torch.exp(block - record.logsum[batch, :, :, None])
        seen = record.visible(batch, rows, columns)
        sequences.append(weights if seen is None else torch.where(seen, weights, 0.0))
    return torch.stack(sequences)
