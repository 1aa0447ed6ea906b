"""Masks and biases as models pass them, turned into rules that are linear in tokens."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from clearhead.attention.call import CAUSAL
from clearhead.attention.masks import Block, Mask
from clearhead.trace.row_rules import RowMask, RowRules
from clearhead.trace.watching.bias_rules import bias_rule, collapsed, is_dense
from clearhead.trace.watching.observed_call import ObservedCall
from clearhead.trace.watching.sample_check import matches_shown

MASKED = -9_000.0  # numbers below mask a key; models add −10,000, −10⁹, the smallest, or −∞

SURELY = -1e30  # no score is so large that it outweighs such a number
FADED = 110.0  # a score that is so much lower leaves nothing of a weight

COARSE = 1.0  # scores that are rounded to more than this are no scores any more

DENSE_NOTE = "the mask fits no simple rule and is kept as it came"
DENSE_BIAS_NOTE = "the bias fits no simple rule and is kept as it came"
SPELLED_NOTE = "the weights fit no formula and are kept as the model computed them"
UNIFORM_NOTE = "rows in which everything is masked attend equally, as in the model"


@dataclass(frozen=True)
class CallRules:
    """Mask and bias of one call. In ``uniform`` rows a finite number masked every key: adding it
    rounded all scores away, so the model attends equally to the keys that got it."""

    piece: RowRules
    uniform: Tensor | None = None  # (batch or 1, head or 1, query)
    equal_keys: Tensor | None = None  # how many keys got it, of the same shape
    blind: bool = False  # some row has no visible key
    rounded: bool = False  # such a row goes by scores that the model rounds coarsely
    outweighable: bool = False  # large scores may outweigh the numbers that mask
    filled_over: bool = False  # scores are lower than what masked ones were filled with
    numbered: Tensor | None = None  # rows without a visible key that go by their rounded scores
    notes: tuple[str, ...] = ()

    def hold(self, observed: ObservedCall) -> bool:
        """False if rows cannot go by rules. Those without a visible key: their scores are rounded
        coarsely, or the model's own weights are not equal where these rules say so, or not those
        that its rounded scores give. Others: scores lie below what masked ones became. In which
        precision a mask was added is never told: mixed precision widens scores on the way."""
        if self.rounded or self.filled_over:
            return False
        if not _are_equal(observed, self.uniform, self.equal_keys):
            return False
        if self.numbered is None or observed.weights is None:
            return True
        return matches_shown(observed, self.numbered)


class RuleCache:
    """The rules of the latest masks: models pass the same mask to every layer."""

    def __init__(self) -> None:
        self._known: dict[Any, tuple[list[Tensor], CallRules]] = {}
        self._causal_rules: dict[Any, CallRules] = {}  # of the latest sizes

    def of(self, observed: ObservedCall) -> CallRules:
        """The rules of a call."""
        queries, keys = observed.sizes
        given = [part for part in (observed.mask, observed.bias) if part is not None]
        if not given and (observed.rule is None or observed.rule is CAUSAL):
            return self._plain(observed, queries, keys)
        if observed.rule is not None or any(part.is_inference() for part in given):
            return _unless_outweighed(observed, _rules(observed, queries, keys))
        name = (
            *((part.data_ptr(), part._version, part.shape, part.stride()) for part in given),
            *(part.dtype for part in given),
            *(observed.mask is None, observed.from_start, observed.sinks is None, queries, keys),
            *(observed.fill, observed.query.dtype, observed.spelled, observed.fused),
        )
        if name in self._known:
            return _unless_outweighed(observed, self._known[name][1])
        rules = _rules(observed, queries, keys)
        if not rules.blind:  # rows without a visible key go by the scores of the call as well
            while len(self._known) >= 4:
                del self._known[next(iter(self._known))]
            self._known[name] = (given, rules)
        return _unless_outweighed(observed, rules)

    def forget(self) -> None:
        """Let go of the masks: another forward begins, and makes its own."""
        self._known.clear()

    def _plain(self, observed: ObservedCall, queries: int, keys: int) -> CallRules:
        """No tensor: the same for every call of these sizes."""
        name = (queries, keys, observed.query.device, observed.rule is CAUSAL, observed.from_start)
        if name not in self._causal_rules:
            self._causal_rules = {name: _rules(observed, queries, keys)}
        return self._causal_rules[name]


def _unless_outweighed(observed: ObservedCall, rules: CallRules) -> CallRules:
    """The rules, or others: a number masks only as long as it is further down than any score."""
    if not rules.outweighable or observed.spelled:
        return rules
    largest = _bound(observed)
    lowest = -2 * largest - FADED
    if lowest < MASKED:
        rules = _rules(observed, *observed.sizes, lowest)
    over = observed.fill is not None and largest > -observed.fill - FADED
    return replace(rules, filled_over=True) if over else rules


def _rules(observed: ObservedCall, queries: int, keys: int, hides: float = MASKED) -> CallRules:
    """``hides``: numbers below mask a key."""
    cells = _Cells.of(observed, queries, keys, hides)
    mask = _visible(observed, cells, queries, keys)
    notes: list[str] = [SPELLED_NOTE] if observed.spelled else []
    piece = RowRules(queries, keys, mask)
    if cells.added is not None:
        added, shown, uniform = cells.added, cells.shown, cells.uniform
        alike = uniform is None or uniform.shape[1] == 1
        if not alike:  # heads differ in the rows that the numbers are not for
            assert uniform is not None and shown is not None
            added = added.masked_fill(uniform[..., None], 0.0)
            shown = shown | uniform[..., None]
        bias = bias_rule(added, shown, queries, keys)
        if bias is not None and uniform is not None and alike:
            bias = replace(bias, without=uniform[:, 0])
        if bias is not None and is_dense(bias) and not observed.spelled:
            notes.append(DENSE_BIAS_NOTE)
        piece = replace(piece, bias=bias)
    if mask is not None and mask.dense is not None and not observed.spelled:
        notes.append(DENSE_NOTE)
    if cells.uniform is not None:
        notes.append(UNIFORM_NOTE)
    return CallRules(
        piece,
        cells.uniform,
        cells.equal_keys,
        cells.blind,
        cells.rounded,
        _is_finite(observed, cells.added),
        numbered=cells.numbered,
        notes=tuple(notes),
    )


def _is_finite(observed: ObservedCall, added: Tensor | None) -> bool:
    """True if some number that masks is one that scores could outweigh."""
    if observed.fill is not None and observed.fill > SURELY:
        return True
    return added is not None and bool(((added <= MASKED) & (added > SURELY)).any())


def _visible(observed: ObservedCall, cells: _Cells, queries: int, keys: int) -> RowMask | None:
    """The mask alone."""
    if observed.rule is CAUSAL and cells.seen is None:
        return _causal_mask(observed, queries, keys, keys - queries)
    if cells.seen is None:
        return _causal_mask(observed, queries, keys, 0) if observed.from_start else None
    return _intervals(cells.seen, queries, keys)


@dataclass(frozen=True)
class _Cells:
    """Mask and bias of a call cell by cell, (batch or 1, head or 1, query or 1, key or 1)."""

    seen: Tensor | None  # what is visible; None: everything, but for a rule
    added: Tensor | None  # the numbers that are added
    shown: Tensor | None  # where they count
    uniform: Tensor | None = None  # (batch or 1, head or 1, query)
    equal_keys: Tensor | None = None
    blind: bool = False
    rounded: bool = False
    numbered: Tensor | None = None  # (batch or 1, head or 1, query)

    @staticmethod
    def of(observed: ObservedCall, queries: int, keys: int, hides: float) -> _Cells:
        """Hidden is what a number hides that leaves nothing of a weight, as long as the row has
        other keys. A row in which everything is hidden goes by the numbers themselves."""
        numbers = [
            part.detach()
            for part in (observed.mask, observed.bias)
            if part is not None and part.dtype != torch.bool
        ]
        added = _sum(numbers, observed.query.dtype) if numbers else None
        flags = observed.mask if observed.mask is not None else None
        flags = flags if flags is not None and flags.dtype == torch.bool else None
        structural = _structural(observed, queries, keys)
        if observed.spelled:
            assert added is not None
            return _Cells(~added.isneginf(), added, ~added.isneginf())
        shown = None if added is None else added > hides
        seen = _both(_both(shown, flags), structural)
        if seen is None or bool(seen.expand(-1, -1, queries, keys).any(dim=-1).all()):
            seen = None if seen is not None and bool(seen.all()) else seen
            return _Cells(seen, added, shown)
        return _with_blind_rows(observed, added, flags, structural, seen, hides)


def _sum(numbers: list[Tensor], dtype: torch.dtype) -> Tensor:
    """The numbers together, as wide as the scores that they are added to."""
    wide = torch.promote_types(dtype, torch.float32)
    total = numbers[0]
    for part in numbers[1:]:
        total = total.to(wide) + part.to(wide)
    return total


def _both(one: Tensor | None, other: Tensor | None) -> Tensor | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _structural(observed: ObservedCall, queries: int, keys: int) -> Tensor | None:
    """What a rule without numbers hides: a mask of ours, or torch's is_causal."""
    device = observed.query.device
    seen: Tensor | None = None
    if observed.rule is not None and observed.rule is not CAUSAL:
        block = Block(range(queries), range(keys), queries, keys, device)
        if not observed.rule.full(block):
            seen = _of_rule(observed.rule, queries, keys, device)
    given = observed.mask is not None or observed.bias is not None
    if observed.rule is CAUSAL and given:
        key = torch.arange(keys, device=device)
        seen = (key <= torch.arange(queries, device=device)[:, None] + keys - queries)[None, None]
    if observed.from_start and (given or seen is not None):
        key = torch.arange(keys, device=device)
        start = (key <= torch.arange(queries, device=device)[:, None])[None, None]
        seen = _both(seen, start)
    return seen


def _with_blind_rows(
    observed: ObservedCall,
    added: Tensor | None,
    flags: Tensor | None,
    structural: Tensor | None,
    seen: Tensor,
    hides: float,
) -> _Cells:
    """Some rows have nothing but hidden keys. If a finite number hides them, it decides."""
    wide = torch.promote_types(observed.query.dtype, torch.float32)
    shape = torch.broadcast_shapes(  # type: ignore[no-untyped-call]
        *(part.shape for part in (added, flags, structural, seen) if part is not None),
        (1, 1, *observed.sizes),
    )
    total = torch.zeros(shape, dtype=wide, device=seen.device)
    if added is not None:
        total = total + added.to(wide)
    if flags is not None:
        total = total.masked_fill(~flags, -torch.inf if observed.fill is None else observed.fill)
    if structural is not None:
        total = total.masked_fill(~structural, -torch.inf)
    seen = seen.expand(shape)
    highest = total.amax(dim=-1, keepdim=True)
    blind = ~seen.any(dim=-1, keepdim=True) & ~highest.isneginf()
    if observed.sinks is not None or not bool(blind.any()):
        return _Cells(seen, added, None if added is None else added > hides, blind=True)
    replaced = flags is not None and observed.fill is not None and highest == observed.fill
    rounded = torch.promote_types(observed.query.dtype, wide) if observed.fused else None
    swallowed = highest.abs() * _spacing(rounded or observed.query.dtype) > _bound(observed)
    uniform = blind & (swallowed | replaced)
    numbered = blind & ~uniform
    near = total > highest + hides
    seen = torch.where(uniform, total == highest, torch.where(numbered, near, seen))
    shown = None if added is None else (added > hides) | (numbered & near)
    coarse = highest.abs() * _spacing(rounded or observed.query.dtype) > COARSE
    by_rounding = bool((numbered & coarse).any())
    by_numbers = numbered[..., 0] if bool(numbered.any()) else None
    if not bool(uniform.any()):
        return _Cells(seen, added, shown, blind=True, rounded=by_rounding, numbered=by_numbers)
    flat = collapsed(collapsed(uniform[..., 0], 0), 1)
    equal = collapsed(collapsed((total == highest).sum(dim=-1), 0), 1)
    return _Cells(
        seen, added, shown, flat, equal, blind=True, rounded=by_rounding, numbered=by_numbers
    )


def _are_equal(observed: ObservedCall, uniform: Tensor | None, count: Tensor | None) -> bool:
    """True if the model's own weights, where they are there, are 1 / count or 0 in such rows."""
    dropped = observed.dropout > 0 and observed.undropped is None
    own = observed.undropped if observed.dropout and not dropped else observed.weights
    if own is None or uniform is None or count is None:
        return True
    own = own.detach()
    share = 1 / count.to(torch.promote_types(own.dtype, torch.float32))[..., None]
    kept = 1 - observed.dropout if dropped else 1.0
    off = torch.minimum((own * kept - share).abs(), own.abs())
    there = uniform[..., None] & ~own.isnan()
    return bool((off <= torch.finfo(own.dtype).eps).masked_fill(~there, True).all())


def _bound(observed: ObservedCall) -> float:
    """No score of the call is larger: |q · k| ≤ ‖q‖ · ‖k‖."""
    longest = [
        float(part.detach().float().norm(dim=-1).max()) for part in (observed.query, observed.key)
    ]
    bound = abs(observed.scale) * longest[0] * longest[1]
    return bound if observed.softcap is None else min(bound, observed.softcap)


def _spacing(dtype: torch.dtype) -> float:
    """Half the distance of a number to its neighbours, relative to it."""
    return torch.finfo(dtype).eps / 4


def _causal_mask(observed: ObservedCall, queries: int, keys: int, offset: int) -> RowMask:
    """Causal: row i sees the keys up to i + offset."""
    row = torch.arange(queries, device=observed.query.device)[None]
    return RowMask(torch.zeros_like(row), (row + offset + 1).clamp(0, keys))


def _of_rule(rule: Mask, queries: int, keys: int, device: torch.device) -> Tensor:
    seen = rule.tensor(queries, keys, device)
    return seen[(None,) * (4 - seen.ndim)]


def _intervals(seen: Tensor, queries: int, keys: int) -> RowMask | None:
    """The rule behind a spelled-out mask: from … to for each row, padding, rows that see all."""
    seen = seen.expand(-1, -1, queries, keys)
    dense = collapsed(collapsed(seen, 0), 1)
    everything = RowMask(
        torch.zeros(1, queries, dtype=torch.long, device=seen.device),
        torch.full((1, queries), keys, device=seen.device),
        dense=dense,
    )
    if dense.shape[1] != 1:
        return everything
    cells = dense[:, 0]  # (batch or 1, query, key)
    if len(cells) == 1 and 1 < queries <= keys:  # most masks are this one
        row = torch.arange(queries, device=seen.device)[None] + keys - queries
        if torch.equal(cells[0], torch.arange(keys, device=seen.device) <= row.t()):
            return RowMask(torch.zeros_like(row), row + 1)
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
