"""How near the proof must come: by the precision that the model computed in, and by its scores.

Tolerances hold for scores up to 40 (by their bound scale · ‖q‖ · ‖k‖) and log-sum-exps up to 40.
They grow in proportion beyond, as the rounding of scores does. No growth goes beyond ``largest``: a
row that differs from the layer's output by more may be wrong, however large its scores are.
Half-precision kernels round their output, not the scores, so only the output gets the wide margin.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from clearhead.trace.record import LayerRecord


@dataclass(frozen=True)
class Tolerance:
    """The largest differences that pass, at usual scores; and of the output at any."""

    sums: float
    output: float
    reference: float
    largest: float


USUAL_SCORE = 40.0
TOLERANCES = {
    torch.float64: Tolerance(1e-9, 1e-9, 1e-9, 1e-7),
    torch.float32: Tolerance(2e-5, 2e-5, 2e-5, 2e-4),
    torch.float16: Tolerance(1e-3, 5e-3, 1e-3, 5e-2),
    torch.bfloat16: Tolerance(1e-3, 3e-2, 1e-3, 1e-1),
}


def tolerance_of(record: LayerRecord) -> Tolerance:
    """By the coarsest precision that took part."""
    dtype = record.facts.dtype
    if dtype == torch.float64 and record.logsum.dtype != torch.float64:
        dtype = torch.float32
    return TOLERANCES.get(dtype, TOLERANCES[torch.float32])


def rounding(
    record: LayerRecord, batch: int, rows: list[int], logsum: Float[Tensor, "head row"]
) -> Float[Tensor, "head row"]:
    """By how much rows round more than usual ones: in proportion to their scores."""
    query, key = record.query[batch][:, rows], record.key[batch]
    longest = key.float().norm(dim=-1).nan_to_num(0.0).amax(dim=-1)
    longest = longest.repeat_interleave(query.shape[0] // key.shape[0])[:, None]
    size = abs(record.facts.scale) * query.float().norm(dim=-1) * longest
    largest = torch.maximum(size.double().nan_to_num(0.0), logsum.abs().nan_to_num(0.0))
    return (largest / USUAL_SCORE).clamp(min=1.0)
