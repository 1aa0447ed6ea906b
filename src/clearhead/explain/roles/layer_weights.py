"""All weights of one layer for a batch of short sentences, from q, k and log-sum-exp."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from clearhead.errors import InputError
from clearhead.trace.record import LayerRecord
from clearhead.trace.row_rules import RowBias, RowMask


def layer_weights(
    record: LayerRecord, batch: int
) -> tuple[Float[Tensor, "batch head query key"], Bool[Tensor, "batch query key"]]:
    """Return the weights, exp(cap(scale · q · k) + bias − logsum), and which keys are visible.

    The first ``batch`` rows of the record are sentences.
    """
    if len(record.pieces) != 1:
        raise InputError(
            f"{record.facts.name} was run in {len(record.pieces)} steps; roles are counted on "
            "whole sentences, run at once.",
            hint="the forward must not generate.",
        )
    query, key, piece = record.query, record.key, record.pieces[0]
    group = query.shape[1] // key.shape[1]
    dtype = torch.float64 if query.dtype == torch.float64 else torch.float32
    keys_of_heads = key.to(dtype).repeat_interleave(group, dim=1) if group > 1 else key.to(dtype)
    scores = (query.to(dtype) * record.facts.scale) @ keys_of_heads.mT
    if record.facts.softcap is not None:
        scores.div_(record.facts.softcap).tanh_().mul_(record.facts.softcap)
    if piece.bias is not None:
        scores += _bias(piece.bias, scores)
    logsum = record.logsum.to(dtype)
    weights = scores.sub_(torch.where(logsum == -torch.inf, 0.0, logsum)[..., None]).exp_()
    visible = _visible(piece.mask, weights)
    weights.masked_fill_(~visible, 0.0)
    seen = visible.any(dim=1).expand(len(weights), -1, -1)
    return weights[:batch].cpu(), seen[:batch].cpu()


def _visible(mask: RowMask | None, like: Tensor) -> Bool[Tensor, "#batch #head query key"]:
    queries, keys = like.shape[2:]
    if mask is None:
        return torch.ones(1, 1, queries, keys, dtype=torch.bool, device=like.device)
    if mask.dense is not None:
        return mask.dense
    place = torch.arange(keys, device=like.device)
    seen = (place >= mask.low[..., None]) & (place < mask.high[..., None])
    if mask.real is not None:
        seen = seen & mask.real[:, None]
    if mask.whole is not None:
        seen = seen | mask.whole[..., None]
    return seen[:, None]


def _bias(bias: RowBias, like: Tensor) -> Tensor:
    queries, keys = like.shape[2:]
    if bias.diagonals is not None:
        row = torch.arange(queries, device=like.device)[:, None]
        places = torch.arange(keys, device=like.device) - row + bias.origin
        added = bias.diagonals[..., places.clamp(0, bias.diagonals.shape[-1] - 1)]
    else:
        assert bias.numbers is not None
        added = bias.numbers
    if bias.without is not None:
        added = added.expand(*added.shape[:2], queries, added.shape[3])
        added = added.masked_fill(bias.without[:, None, :, None], 0.0)
    return added.to(like.dtype)


def merged_to_units(
    weights: Float[Tensor, "batch head query key"], owners: Float[Tensor, "batch token unit"]
) -> Float[Tensor, "batch head unit unit"]:
    """Return weights between units: summed into a unit, averaged out of it (Clark et al. 2019)."""
    belongs = owners.to(weights.dtype)[:, None]
    shares = belongs / belongs.sum(dim=2, keepdim=True).clamp_(min=1.0)
    return shares.mT @ (weights @ belongs)
