"""The log-sum-exp of each row, for calls whose kernel did not return it."""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from clearhead.attention.call import CAUSAL
from clearhead.attention.observers import OBSERVERS
from clearhead.trace.chunks import LaterSums
from clearhead.trace.row_rules import RowRules
from clearhead.trace.watching.observed_call import ObservedCall

_FLASH = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
LATEST = 1 << 18  # numbers of a mask that is kept for the next layer
BLOCK_NUMBERS = 1 << 22  # of the map that are spelled out at once: 16 MB in float32


def log_sum_exp(observed: ObservedCall) -> Tensor:
    """(batch, head, query), sinks included, in float32 or wider; 0 for a row that sees nothing."""
    fused = observed.softcap is None and observed.query.device.type == "cpu"
    keys = _flash_sums(observed) if fused else plain_sums(observed)
    return with_sinks(keys, observed.sinks, blind_rows(observed))


def later_sums(query: Tensor, key: Tensor, piece: RowRules, given: ObservedCall) -> LaterSums:
    """The same, from what is recorded of a call, when somebody asks first."""
    scale, softcap = given.scale, given.softcap
    sinks = None if given.sinks is None else given.sinks.detach().clone()

    def compute() -> Tensor:
        with (
            torch.no_grad(),
            torch._C.DisableTorchFunction(),
            torch._C._DisableAutocast(),
            OBSERVERS.reported(),
        ):
            rule = CAUSAL if _sees_up_to_itself(piece) else None
            mask = None if rule is CAUSAL else _spelled(piece, query)
            call = ObservedCall(
                query, key, None, scale, None, mask=mask, rule=rule, softcap=softcap, sinks=sinks
            )
            return log_sum_exp(call)

    return LaterSums(tuple(query.shape[:3]), compute)


def _sees_up_to_itself(piece: RowRules) -> bool:
    mask = piece.mask
    if mask is None or mask.dense is not None or mask.real is not None or mask.whole is not None:
        return False
    standing = torch.arange(piece.rows, device=mask.high.device) + piece.keys - piece.rows + 1
    return bool((mask.low == 0).all()) and bool((mask.high == standing).all())


def _spelled(piece: RowRules, query: Tensor) -> Tensor | None:
    """(batch or 1, 1, query, key); None if everything is visible."""
    if piece.mask is None:
        return None
    rows, columns = range(piece.rows), range(piece.keys)
    blocks = [piece.mask.block(n, rows, columns) for n in range(len(piece.mask.high))]
    whole = torch.ones(1, len(rows), len(columns), dtype=torch.bool, device=query.device)
    return torch.stack([whole if block is None else block for block in blocks])


def with_sinks(logsum: Tensor, sinks: Tensor | None, blind: Tensor | None = None) -> Tensor:
    """The sums with each head's sink in the denominator; a ``blind`` row has nothing else."""
    if sinks is None:
        return logsum
    alone = sinks.detach().to(logsum.dtype)[:, None]
    both = torch.logaddexp(logsum, alone)
    return both if blind is None else torch.where(blind, alone, both)


def blind_rows(observed: ObservedCall) -> Tensor | None:
    """Rows that see nothing, for calls with sinks."""
    if observed.sinks is None:
        return None
    found = []
    for rows in _blocks(observed, heads_at_once=1):
        added = observed.added(rows)
        if added is None:
            return None
        blind = added.isneginf().all(dim=-1)
        found.append(blind.expand(*blind.shape[:2], len(rows)))
    return torch.cat(found, dim=2)


def _blocks(observed: ObservedCall, heads_at_once: int) -> list[range]:
    queries, keys = observed.sizes
    length = max(1, BLOCK_NUMBERS // max(1, keys * heads_at_once))
    return [range(start, min(start + length, queries)) for start in range(0, queries, length)]


def _flash_sums(observed: ObservedCall) -> Tensor:
    """By torch's fused kernel, with the keys standing in for the values."""
    wide = torch.promote_types(observed.query.dtype, torch.float32)
    query, key = (_side_by_side(part.detach().to(wide)) for part in (observed.query, observed.key))
    plain = observed.mask is None and observed.bias is None and observed.rule is None
    if plain and (not observed.from_start or query.shape[2] == key.shape[2]):
        _, sums = _FLASH(query, key, key, 0.0, observed.from_start, scale=observed.scale)
        return sums  # type: ignore[no-any-return]
    numbers = query.shape[2] * key.shape[2]
    if _is_causal(observed) and numbers <= LATEST:
        mask = up_to_itself(query.shape[2], key.shape[2], wide, query.device)
        return _FLASH(query, key, key, 0.0, False, attn_mask=mask, scale=observed.scale)[1]  # type: ignore[no-any-return]
    parts = []
    for rows in _blocks(observed, heads_at_once=1):
        added = observed.added(rows)
        if added is not None and added.dtype != query.dtype:
            added = added.to(wide)
        part = query[:, :, rows.start : rows.stop]
        parts.append(_FLASH(part, key, key, 0.0, False, attn_mask=added, scale=observed.scale)[1])
    return torch.cat(parts, dim=2)


def _is_causal(observed: ObservedCall) -> bool:
    """True if each row sees the keys up to its own, the last one all, and nothing is added."""
    plain = observed.mask is None and observed.bias is None and not observed.from_start
    return plain and observed.rule is CAUSAL


@functools.lru_cache(maxsize=1)
def up_to_itself(queries: int, keys: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """What is added to such scores; all layers share it."""
    hidden = torch.full((queries, keys), -torch.inf, dtype=dtype, device=device)
    return hidden.triu(keys - queries + 1)


def _side_by_side(states: Tensor) -> Tensor:
    """The kernel takes it for granted that a vector's numbers lie side by side in memory."""
    return states if states.stride(3) == 1 else states.contiguous()


def plain_sums(observed: ObservedCall) -> Tensor:
    """By the formula, spelled out block after block; without sinks."""
    wide = torch.promote_types(observed.query.dtype, torch.float32)
    group = observed.query.shape[1] // observed.key.shape[1]
    key = observed.key.detach().to(wide).repeat_interleave(group, dim=1).transpose(2, 3)
    parts = []
    for rows in _blocks(observed, heads_at_once=observed.query.shape[0] * observed.query.shape[1]):
        query = observed.query[:, :, rows.start : rows.stop].detach().to(wide)
        scores = query @ key * observed.scale
        if observed.softcap is not None:
            scores = observed.softcap * torch.tanh(scores / observed.softcap)
        parts.append(torch.logsumexp(observed.scored(scores, rows), dim=-1))
    sums = torch.cat(parts, dim=2)
    return sums.masked_fill(sums.isneginf(), 0.0)
