"""The log-sum-exp of each row, for calls whose kernel did not tell it."""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.trace.sighting import Sighting

_FLASH = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
BLOCK_NUMBERS = 1 << 22  # of the map that are spelled out at once: 16 MB in float32


def log_sum(sighting: Sighting) -> Tensor:
    """(batch, head, query), sinks included, in float32 or wider; 0 for a row that sees nothing."""
    fused = sighting.softcap is None and sighting.query.device.type == "cpu"
    keys = _flash_sums(sighting) if fused else _plain_sums(sighting)
    return with_sinks(keys, sighting.sinks)


def with_sinks(logsum: Tensor, sinks: Tensor | None) -> Tensor:
    """The sums with each head's sink in the denominator."""
    if sinks is None:
        return logsum
    return torch.logaddexp(logsum, sinks.detach().to(logsum.dtype)[:, None])


def _blocks(sighting: Sighting, heads_at_once: int) -> list[range]:
    queries, keys = sighting.sizes
    length = max(1, BLOCK_NUMBERS // max(1, keys * heads_at_once))
    return [range(start, min(start + length, queries)) for start in range(0, queries, length)]


def _flash_sums(sighting: Sighting) -> Tensor:
    """By torch's fused kernel, with the keys standing in for the values."""
    query, key = (_side_by_side(part.detach()) for part in (sighting.query, sighting.key))
    plain = sighting.mask is None and sighting.bias is None and sighting.rule is None
    if plain and (not sighting.from_start or query.shape[2] == key.shape[2]):
        _, sums = _FLASH(query, key, key, 0.0, sighting.from_start, scale=sighting.scale)
        return sums  # type: ignore[no-any-return]
    wide = torch.promote_types(query.dtype, torch.float32)
    parts = []
    for rows in _blocks(sighting, heads_at_once=1):
        added = sighting.added(rows)
        if added is not None and added.dtype != query.dtype:
            added = added.to(wide)
        part = query[:, :, rows.start : rows.stop]
        parts.append(_FLASH(part, key, key, 0.0, False, attn_mask=added, scale=sighting.scale)[1])
    return torch.cat(parts, dim=2)


def _side_by_side(states: Tensor) -> Tensor:
    """The kernel takes it for granted that a vector's numbers lie side by side in memory."""
    return states if states.stride(3) == 1 else states.contiguous()


def _plain_sums(sighting: Sighting) -> Tensor:
    wide = torch.promote_types(sighting.query.dtype, torch.float32)
    group = sighting.query.shape[1] // sighting.key.shape[1]
    key = sighting.key.detach().to(wide).repeat_interleave(group, dim=1).transpose(2, 3)
    parts = []
    for rows in _blocks(sighting, heads_at_once=sighting.query.shape[0] * sighting.query.shape[1]):
        query = sighting.query[:, :, rows.start : rows.stop].detach().to(wide)
        scores = query @ key * sighting.scale
        if sighting.softcap is not None:
            scores = sighting.softcap * torch.tanh(scores / sighting.softcap)
        added = sighting.added(rows)
        parts.append(torch.logsumexp(scores if added is None else scores + added, dim=-1))
    sums = torch.cat(parts, dim=2)
    return sums.masked_fill(sums.isneginf(), 0.0)
