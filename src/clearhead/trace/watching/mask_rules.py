"""Masks and biases as models pass them, turned into rules that are linear in tokens."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from clearhead.attention.call import CAUSAL
from clearhead.attention.masks import Block, Mask
from clearhead.trace.row_rules import RowBias, RowMask, RowRules
from clearhead.trace.watching.observed_call import ObservedCall

MASKED = -9_999.0  # numbers below mask a key; models add −10,000, −10⁹, the smallest, or −∞
ABSORBING = -1e8  # numbers below absorb every score that they are added to: float32 rounds it off

DENSE_NOTE = "the mask fits no simple rule and is kept as it came"
DENSE_BIAS_NOTE = "the bias fits no simple rule and is kept as it came"
UNIFORM_NOTE = "rows that see nothing attend equally to all keys, as in the model"


@dataclass(frozen=True)
class CallRules:
    """Mask and bias of one call. In ``uniform`` rows a finite number masked every key."""

    piece: RowRules
    uniform: Tensor | None = None  # (batch or 1, query)
    notes: tuple[str, ...] = ()


class RuleCache:
    """The rules of the latest masks: models pass the same mask to every layer."""

    def __init__(self) -> None:
        self._known: dict[Any, tuple[list[weakref.ref[Tensor]], CallRules]] = {}
        self._causal_rules: dict[
            Any, CallRules
        ] = {}  # of the latest sizes: decoding has ever new ones

    def of(self, observed: ObservedCall) -> CallRules:
        """The rules of a call."""
        queries, keys = observed.sizes
        if observed.rule is CAUSAL and observed.mask is None and observed.bias is None:
            return self._causal(observed, queries, keys)
        given = [part for part in (observed.mask, observed.bias) if part is not None]
        if not given or observed.rule is not None or any(part.is_inference() for part in given):
            return _rules(observed, queries, keys)
        name = (
            *((id(part), part._version, part.data_ptr(), part.shape) for part in given),
            *(observed.mask is None, observed.from_start, observed.sinks is None, queries, keys),
        )
        if name in self._known:
            references, rules = self._known[name]
            if all(ref() is part for ref, part in zip(references, given, strict=True)):
                return rules
        rules = _rules(observed, queries, keys)
        alive = {known: entry for known, entry in self._known.items() if _alive(entry[0])}
        self._known = {**alive, name: ([weakref.ref(part) for part in given], rules)}
        return rules

    def _causal(self, observed: ObservedCall, queries: int, keys: int) -> CallRules:
        """No tensor, one rule: the same for every call of these sizes."""
        name = (queries, keys, observed.query.device)
        if name not in self._causal_rules:
            self._causal_rules = {name: _rules(observed, queries, keys)}
        return self._causal_rules[name]


def _alive(references: list[weakref.ref[Tensor]]) -> bool:
    return all(reference() is not None for reference in references)


def _rules(observed: ObservedCall, queries: int, keys: int) -> CallRules:
    mask, uniform, notes = _visible(observed, queries, keys)
    piece = RowRules(queries, keys, mask)
    added = [
        part.detach()
        for part in (observed.mask, observed.bias)
        if part is not None and part.dtype != torch.bool
    ]
    if added:
        bias = _bias(sum(added[1:], added[0]), queries, keys)
        if bias is not None and uniform is not None:
            bias = replace(bias, without=uniform)
        if bias is not None and _is_dense(bias):
            notes.append(DENSE_BIAS_NOTE)
        piece = replace(piece, bias=bias)
    if mask is not None and mask.dense is not None:
        notes.append(DENSE_NOTE)
    if uniform is not None:
        notes.append(UNIFORM_NOTE)
    return CallRules(piece, uniform, tuple(notes))


def _visible(
    observed: ObservedCall, queries: int, keys: int
) -> tuple[RowMask | None, Tensor | None, list[str]]:
    """The mask alone; rows in which a finite number masks every key; notes."""
    if observed.rule is CAUSAL:
        return _causal_mask(observed, queries, keys, keys - queries), None, []
    seen, uniform = _visible_cells(observed, queries, keys)
    if seen is None:
        if observed.from_start:
            return _causal_mask(observed, queries, keys, 0), None, []
        return None, None, []
    if uniform is not None:
        seen = seen | uniform[:, None, :, None]
        if not bool(uniform.any()):
            uniform = None
    return _intervals(seen, queries, keys), uniform, []


def _causal_mask(observed: ObservedCall, queries: int, keys: int, offset: int) -> RowMask:
    """Causal: row i sees the keys up to i + offset."""
    row = torch.arange(queries, device=observed.query.device)[None]
    return RowMask(torch.zeros_like(row), (row + offset + 1).clamp(0, keys))


def _visible_cells(
    observed: ObservedCall, queries: int, keys: int
) -> tuple[Tensor | None, Tensor | None]:
    """What is visible as booleans (batch or 1, head or 1, query or 1, key), and uniform rows."""
    seen: Tensor | None = None
    uniform: Tensor | None = None
    device = observed.query.device
    for given in (observed.mask, observed.bias):
        if given is None:
            continue
        part = given.detach()
        if part.dtype != torch.bool:
            shown = part > MASKED
            blind = ~shown.any(dim=-1, keepdim=True)
            if observed.sinks is None and bool(blind.any()):
                finite = blind & ~part.isneginf().all(dim=-1, keepdim=True)
                swallowed = finite & (part.amax(dim=-1, keepdim=True) < ABSORBING)
                swallowed_rows = swallowed.any(dim=1)[..., 0]
                uniform = swallowed_rows if uniform is None else uniform | swallowed_rows
                shown = shown | (finite & ~swallowed)  # a constant shift hides nothing
            if bool(shown.all()):
                continue
            part = shown
        seen = part if seen is None else seen & part
    if observed.rule is not None:
        block = Block(range(queries), range(keys), queries, keys, device)
        if not observed.rule.full(block):
            rule = _of_rule(observed.rule, queries, keys, device)
            seen = rule if seen is None else seen & rule
    if observed.from_start and seen is not None:
        key = torch.arange(keys, device=device)
        seen = seen & (key <= torch.arange(queries, device=device)[:, None])
    if uniform is not None:
        uniform = uniform.expand(-1, queries)
    return seen, uniform


def _of_rule(rule: Mask, queries: int, keys: int, device: torch.device) -> Tensor:
    seen = rule.tensor(queries, keys, device)
    return seen[(None,) * (4 - seen.ndim)]


def _intervals(seen: Tensor, queries: int, keys: int) -> RowMask | None:
    """The rule behind a spelled-out mask: from … to for each row, padding, rows that see all."""
    seen = seen.expand(-1, -1, queries, keys)
    dense = _collapsed(_collapsed(seen, 0), 1)
    everything = RowMask(
        torch.zeros(1, queries, dtype=torch.long, device=seen.device),
        torch.full((1, queries), keys, device=seen.device),
        dense=dense,
    )
    if dense.shape[1] != 1:
        return everything
    cells = dense[:, 0]  # (batch or 1, query, key)
    numbers = cells.to(torch.uint8)
    some = cells.any(dim=-1)
    low = torch.where(some, numbers.argmax(dim=-1), 0)
    high = torch.where(some, keys - numbers.flip(-1).argmax(dim=-1), 0)
    key = torch.arange(keys, device=seen.device)
    inside = (key >= low[..., None]) & (key < high[..., None])
    holes = inside & ~cells
    if not bool(holes.any()):
        return None if bool(cells.all()) else RowMask(low, high)
    # A row that sees everything may be an exception to padding, or the last row of a causal mask.
    real = ~holes.any(dim=1)
    whole = cells.all(dim=-1)
    inside &= real[:, None]
    inside |= whole[..., None]
    if not torch.equal(inside, cells):
        return everything
    return RowMask(low, high, real, whole if bool(whole.any()) else None)


def _collapsed(tensor: Tensor, axis: int) -> Tensor:
    """Without an axis along which everything is the same."""
    if tensor.shape[axis] == 1:
        return tensor
    first = tensor.narrow(axis, 0, 1)
    if tensor.stride(axis) == 0 or bool((tensor == first).all()):
        return first
    return tensor


def _bias(added: Tensor, queries: int, keys: int) -> RowBias | None:
    """The rule behind numbers that are added to the scores: of the key, or of the distance."""
    shown = torch.where(added > MASKED, added, 0.0)
    if not bool(shown.any()):
        return None
    shown = _collapsed(_collapsed(shown, 0), 1)
    if shown.shape[2] == 1 or shown.shape[3] == 1:
        return RowBias(shown.contiguous())
    known = (added > MASKED).expand(added.shape)
    column = torch.where(known, added, -torch.inf).amax(dim=2, keepdim=True)
    column = _collapsed(_collapsed(torch.where(column.isneginf(), 0.0, column), 0), 1)
    if bool(torch.where(known, added == column, True).all()):
        return RowBias(column)
    table = _diagonals(shown, queries, keys)
    if table is not None:
        return RowBias(diagonals=table, origin=queries - 1)
    return RowBias(shown.clone())


def _diagonals(numbers: Tensor, queries: int, keys: int) -> Tensor | None:
    """One number for each distance j − i from −(queries − 1) to keys − 1, if that is all."""
    below = numbers[:, :, :, 0].flip(-1)  # distances −(queries − 1) … 0
    table = torch.cat([below, numbers[:, :, 0, 1:]], dim=-1)
    for start in range(0, queries, 256):
        rows = torch.arange(start, min(start + 256, queries), device=numbers.device)[:, None]
        places = torch.arange(keys, device=numbers.device) - rows + queries - 1
        if not torch.equal(table[:, :, places], numbers[:, :, start : start + 256]):
            return None
    return table


def _is_dense(bias: RowBias) -> bool:
    return bias.numbers is not None and 1 not in bias.numbers.shape[2:]
