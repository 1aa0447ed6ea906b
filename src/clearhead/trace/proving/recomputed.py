"""Rows of all heads computed again from the record, by torch's fused kernel where it can."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from clearhead.trace.record import LayerRecord

_FLASH = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default


@dataclass(frozen=True)
class Rows:
    """What the record says of some rows."""

    logsum: Float[Tensor, "head row"]  # sinks included
    output: Float[Tensor, "head row probe"] | None  # Σ weight · projected value
    blind: Bool[Tensor, "#head row"]  # rows that see nothing
    above_diagonal: float  # 1 if a causal layer has a visible key above the diagonal


def recomputed(record: LayerRecord, batch: int, rows: list[int], probe: Tensor | None) -> Rows:
    """``rows`` are sorted; a run of them is one block, scattered ones are gathered."""
    keys, facts = record.key.shape[2], record.facts
    visible, added = _rules(record, batch, rows)
    blind = torch.zeros(1, len(rows), dtype=torch.bool)
    above = 0.0
    if visible is not None:
        blind = ~visible.any(dim=-1)
        if facts.causal:
            last = torch.tensor(rows) + keys - record.query.shape[2]
            beyond = torch.arange(keys) > last[:, None]
            above = float(bool((visible & beyond).any()))
    if facts.causal and visible is None and rows[0] + 1 < record.query.shape[2]:
        above = 1.0
    query, key = record.query[batch][:, rows], record.key[batch]
    plain = facts.softcap is not None or query.device.type != "cpu" or query.dtype.itemsize == 8
    compute = _plain if plain or _unlike(record, probe) else _fused
    logsum, output = compute(record, query, key, probe, added)
    nothing = blind.expand(logsum.shape)
    if record.sinks is not None:  # a row that sees nothing attends to its sink alone
        logsum = logsum.masked_fill(nothing, -torch.inf)
        sink = record.sinks.double().cpu()[:, None]
        whole = torch.logaddexp(logsum, sink)
        output = None if output is None else output * torch.exp(logsum - whole)[..., None]
        logsum, blind = whole, torch.zeros_like(blind)
    if output is not None:
        output = output.masked_fill(nothing[..., None], 0.0)
    return Rows(logsum.masked_fill(blind.expand(logsum.shape), 0.0), output, blind, above)


def _unlike(record: LayerRecord, probe: Tensor | None) -> bool:
    """True if the fused kernel does not take these: widths too small for the projections."""
    return probe is not None and record.key.shape[3] < probe.shape[2]


def _rules(record: LayerRecord, batch: int, rows: list[int]) -> tuple[Tensor | None, Tensor | None]:
    """Which keys are visible, and what is added to the scores (−∞ where they are not)."""
    columns = range(record.key.shape[2])
    runs = [range(rows[0], rows[-1] + 1)]
    if rows[-1] - rows[0] + 1 != len(rows):
        runs = [range(row, row + 1) for row in rows]
    masks = [record.visible(batch, run, columns) for run in runs]
    biases = [record.bias(batch, run, columns) for run in runs]
    visible = None
    if any(mask is not None for mask in masks):
        spelled = [
            torch.ones(1, len(run), len(columns), dtype=torch.bool) if mask is None else mask.cpu()
            for run, mask in zip(runs, masks, strict=True)
        ]
        visible = _stacked(spelled)
    added = None
    if any(bias is not None for bias in biases):
        numbers = [
            torch.zeros(1, len(run), len(columns)) if bias is None else bias.cpu()
            for run, bias in zip(runs, biases, strict=True)
        ]
        added = _stacked(numbers)
    if visible is not None:
        base = torch.zeros(()) if added is None else added
        added = torch.where(visible, base, -torch.inf)
    return visible, added


def _stacked(parts: list[Tensor]) -> Tensor:
    heads = max(part.shape[0] for part in parts)
    return torch.cat([part.expand(heads, -1, -1) for part in parts], dim=1)


def _fused(
    record: LayerRecord, query: Tensor, key: Tensor, probe: Tensor | None, added: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    query, key = query.float(), key.float()
    value = (
        key if probe is None else functional.pad(probe.float(), (0, key.shape[2] - probe.shape[2]))
    )
    if value.shape[0] != key.shape[0]:
        key, value = (_for_every_head(part, query.shape[0]) for part in (key, value))
    mask = None if added is None else added.float()[None]
    output, logsum = _FLASH(
        query[None].contiguous(), key[None].contiguous(), value[None].contiguous(), 0.0, False,
        attn_mask=mask, scale=record.facts.scale,
    )  # fmt: skip
    projected = None if probe is None else output[0, ..., : probe.shape[2]].double()
    return logsum[0].double(), projected


def _plain(
    record: LayerRecord, query: Tensor, key: Tensor, probe: Tensor | None, added: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    sums, outputs = [], []
    for head in range(query.shape[0]):
        own = key[head // (query.shape[0] // key.shape[0])].double().cpu()
        scores = query[head].double().cpu() @ own.T * record.facts.scale
        if record.facts.softcap is not None:
            scores = record.facts.softcap * torch.tanh(scores / record.facts.softcap)
        if added is not None:
            scores = scores + added[head if added.shape[0] > 1 else 0]
        total = torch.logsumexp(scores, dim=1)
        sums.append(total)
        if probe is not None:
            weights = torch.exp(scores - total[:, None]).nan_to_num(0.0)
            outputs.append(
                weights @ probe[head // (query.shape[0] // probe.shape[0])].double().cpu()
            )
    return torch.stack(sums), torch.stack(outputs) if outputs else None


def _for_every_head(part: Tensor, heads: int) -> Tensor:
    return part.repeat_interleave(heads // part.shape[0], dim=0)
