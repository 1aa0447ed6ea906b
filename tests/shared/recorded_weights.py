"""What the formula of record.py gives, for comparing with what models compute themselves."""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.trace.record import LayerRecord

HUGE = 4_096.0  # a bias beyond it swallows digits of the score, in the precision of the model


def weights_of(record: LayerRecord) -> Tensor:
    """All weights by the formula of record.py, (batch, head, query, key), in float64.

    A recorded log-sum-exp may be off by its own rounding, which would be in every weight: it is
    compared with the sum of the scores, which then takes its place."""
    facts, query, key = record.facts, record.query, record.key
    wide = torch.promote_types(query.dtype, torch.float32)
    key = key.double().repeat_interleave(query.shape[1] // key.shape[1], dim=1)
    scores = query.double() @ key.transpose(2, 3) * facts.scale
    if facts.softcap is not None:
        scores = facts.softcap * torch.tanh(scores / facts.softcap)
    rows, columns = range(query.shape[2]), range(key.shape[2])
    sequences = []
    for batch in range(query.shape[0]):
        block = scores[batch]
        bias = record.bias(batch, rows, columns)
        if bias is not None:
            rounded = (block.to(wide) + bias.to(wide)).double()
            block = torch.where(bias.abs() > HUGE, rounded, block + bias)
        seen = record.visible(batch, rows, columns)
        if seen is not None:
            block = torch.where(seen, block, -torch.inf)
        sums = torch.logsumexp(block, dim=-1)
        if record.sinks is not None:
            sums = torch.logaddexp(sums, record.sinks.double()[:, None])
        _compare(record.logsum[batch].double(), sums, block, torch.finfo(wide).eps)
        weights = torch.exp(block - sums[..., None]).nan_to_num(0.0)
        sequences.append(weights)
    return torch.stack(sequences)


def _compare(recorded: Tensor, sums: Tensor, scores: Tensor, unit: float) -> None:
    seeing = ~sums.isneginf()
    largest = scores.masked_fill(scores.isinf(), 0.0).abs().amax(dim=-1)
    off = ((recorded - sums).abs() / (1 + largest))[seeing]
    assert not (off > 16 * unit).any(), f"{off.max() / unit:.1f} units"
