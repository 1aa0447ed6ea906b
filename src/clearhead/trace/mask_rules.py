"""From the masks and biases that models hand over to rules that are linear in tokens."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from clearhead.attention.call import CAUSAL
from clearhead.attention.masks import Block, Mask
from clearhead.trace.row_rules import Piece, RowBias, RowMask
from clearhead.trace.sighting import Sighting

HIDDEN = -9_999.0  # numbers below mean "hidden"; models write −10,000, −10⁹, the smallest, or −∞
SWALLOWED = -1e8  # numbers below swallow every score that they are added to

DENSE_NOTE = "the mask fits no simple rule and is kept as it came"
DENSE_BIAS_NOTE = "the bias fits no simple rule and is kept as it came"
EVEN_NOTE = "rows that see nothing are spread evenly over all keys, as the model does it"


@dataclass(frozen=True)
class Rules:
    """Mask and bias of one call; ``even`` rows hid everything with a finite number."""

    piece: Piece
    even: Tensor | None = None  # (batch or 1, query)
    notes: tuple[str, ...] = ()


class RuleBook:
    """Rules of the masks seen so far: models hand the same mask to every layer."""

    def __init__(self) -> None:
        self._known: dict[Any, tuple[list[weakref.ref[Tensor]], Rules]] = {}
        self._staircases: dict[Any, Rules] = {}  # of the latest sizes: decoding has ever new ones

    def of(self, sighting: Sighting) -> Rules:
        """The rules of a call."""
        queries, keys = sighting.sizes
        if sighting.rule is CAUSAL and sighting.mask is None and sighting.bias is None:
            return self._causal(sighting, queries, keys)
        given = [part for part in (sighting.mask, sighting.bias) if part is not None]
        if not given or sighting.rule is not None or any(part.is_inference() for part in given):
            return _rules(sighting, queries, keys)
        name = (
            *((id(part), part._version, part.data_ptr(), part.shape) for part in given),
            *(sighting.mask is None, sighting.from_start, sighting.sinks is None, queries, keys),
        )
        if name in self._known:
            references, rules = self._known[name]
            if all(ref() is part for ref, part in zip(references, given, strict=True)):
                return rules
        rules = _rules(sighting, queries, keys)
        alive = {known: entry for known, entry in self._known.items() if _alive(entry[0])}
        self._known = {**alive, name: ([weakref.ref(part) for part in given], rules)}
        return rules

    def _causal(self, sighting: Sighting, queries: int, keys: int) -> Rules:
        """No tensor, one rule: the same for every call of these sizes."""
        name = (queries, keys, sighting.query.device)
        if name not in self._staircases:
            self._staircases = {name: _rules(sighting, queries, keys)}
        return self._staircases[name]


def _alive(references: list[weakref.ref[Tensor]]) -> bool:
    return all(reference() is not None for reference in references)


def _rules(sighting: Sighting, queries: int, keys: int) -> Rules:
    mask, even, notes = _visible(sighting, queries, keys)
    piece = Piece(queries, keys, mask)
    added = [
        part.detach()
        for part in (sighting.mask, sighting.bias)
        if part is not None and part.dtype != torch.bool
    ]
    if added:
        bias = _bias(sum(added[1:], added[0]), queries, keys)
        if bias is not None and even is not None:
            bias = replace(bias, without=even)
        if bias is not None and _spelled_out(bias):
            notes.append(DENSE_BIAS_NOTE)
        piece = replace(piece, bias=bias)
    if mask is not None and mask.dense is not None:
        notes.append(DENSE_NOTE)
    if even is not None:
        notes.append(EVEN_NOTE)
    return Rules(piece, even, tuple(notes))


def _visible(
    sighting: Sighting, queries: int, keys: int
) -> tuple[RowMask | None, Tensor | None, list[str]]:
    """The mask alone; rows that a finite number hides wholly; notes."""
    if sighting.rule is CAUSAL:
        return _staircase(sighting, queries, keys, keys - queries), None, []
    seen, even = _spelled(sighting, queries, keys)
    if seen is None:
        if sighting.from_start:
            return _staircase(sighting, queries, keys, 0), None, []
        return None, None, []
    if even is not None:
        seen = seen | even[:, None, :, None]
        if not bool(even.any()):
            even = None
    return _intervals(seen, queries, keys), even, []


def _staircase(sighting: Sighting, queries: int, keys: int, offset: int) -> RowMask:
    """Causal: row i sees the keys up to i + offset."""
    row = torch.arange(queries, device=sighting.query.device)[None]
    return RowMask(torch.zeros_like(row), (row + offset + 1).clamp(0, keys))


def _spelled(sighting: Sighting, queries: int, keys: int) -> tuple[Tensor | None, Tensor | None]:
    """What is visible as booleans (batch or 1, head or 1, query or 1, key), and even rows."""
    seen: Tensor | None = None
    even: Tensor | None = None
    device = sighting.query.device
    for given in (sighting.mask, sighting.bias):
        if given is None:
            continue
        part = given.detach()
        if part.dtype != torch.bool:
            shown = part > HIDDEN
            blind = ~shown.any(dim=-1, keepdim=True)
            if sighting.sinks is None and bool(blind.any()):
                finite = blind & ~part.isneginf().all(dim=-1, keepdim=True)
                swallowed = finite & (part.amax(dim=-1, keepdim=True) < SWALLOWED)
                swallowed_rows = swallowed.any(dim=1)[..., 0]
                even = swallowed_rows if even is None else even | swallowed_rows
                shown = shown | (finite & ~swallowed)  # a constant shift hides nothing
            if bool(shown.all()):
                continue
            part = shown
        seen = part if seen is None else seen & part
    if sighting.rule is not None:
        block = Block(range(queries), range(keys), queries, keys, device)
        if not sighting.rule.full(block):
            rule = _of_rule(sighting.rule, queries, keys, device)
            seen = rule if seen is None else seen & rule
    if sighting.from_start and seen is not None:
        key = torch.arange(keys, device=device)
        seen = seen & (key <= torch.arange(queries, device=device)[:, None])
    if even is not None:
        even = even.expand(-1, queries)
    return seen, even


def _of_rule(rule: Mask, queries: int, keys: int, device: torch.device) -> Tensor:
    seen = rule.tensor(queries, keys, device)
    return seen[(None,) * (4 - seen.ndim)]


def _intervals(seen: Tensor, queries: int, keys: int) -> RowMask | None:
    """The rule behind a spelled-out mask: from … to for each row, padding, rows that see all."""
    seen = seen.expand(-1, -1, queries, keys)
    dense = _narrow(_narrow(seen, 0), 1)
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


def _narrow(tensor: Tensor, axis: int) -> Tensor:
    """Without an axis along which everything is the same."""
    if tensor.shape[axis] == 1:
        return tensor
    first = tensor.narrow(axis, 0, 1)
    if tensor.stride(axis) == 0 or bool((tensor == first).all()):
        return first
    return tensor


def _bias(added: Tensor, queries: int, keys: int) -> RowBias | None:
    """The rule behind numbers that are added to the scores: of the key, or of the distance."""
    shown = torch.where(added > HIDDEN, added, 0.0)
    if not bool(shown.any()):
        return None
    shown = _narrow(_narrow(shown, 0), 1)
    if shown.shape[2] == 1 or shown.shape[3] == 1:
        return RowBias(shown.contiguous())
    known = (added > HIDDEN).expand(added.shape)
    column = torch.where(known, added, -torch.inf).amax(dim=2, keepdim=True)
    column = _narrow(_narrow(torch.where(column.isneginf(), 0.0, column), 0), 1)
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


def _spelled_out(bias: RowBias) -> bool:
    return bias.numbers is not None and 1 not in bias.numbers.shape[2:]
