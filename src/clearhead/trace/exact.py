"""Any block of one head's attention, computed again from q, k and each row's log-sum-exp.

    weight = exp(cap(scale · q · k) + bias − logsum)   where visible, otherwise 0

Rows and tiles are computed in float64, from whole rows, and rounded once at the end: a float32
log-sum-exp of 269 alone would make them wrong by 1e-5. Maps and sums over very many weights are
computed in float32 with the recorded log-sum-exps, as the kernels do inside; in float64, with
log-sum-exps computed again, where scores are large. Nothing larger than some rows is ever made,
whatever the length of the text.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from clearhead.trace.record import LayerRecord
from clearhead.trace.row_rules import RowMask

BLOCK_ROWS, BLOCK_COLUMNS = 512, 2048  # 4 MB in float32: it stays in the cache between two passes
PRECISE = 1 << 22  # weights of whole rows that are computed in float64 at once
LARGE_SCORE = 128.0  # where float32 rounds weights by more than 2e-5
HUGE = 4_096.0  # a bias beyond it masks a key
DENSE_MASK = 1 << 22  # cells of a mask that may be spelled out to pick scattered ones from it


@dataclass(frozen=True)
class Positions:
    """Positions along one axis: a run of them, or any that lie within the run (``index``)."""

    run: range
    index: Tensor | None = None

    @classmethod
    def at(cls, index: Tensor) -> Positions:
        """These positions, in this order, repeated ones too."""
        if index.numel() == 0:
            return cls(range(0))
        low, high = int(index.min()), int(index.max())
        if index.numel() == high - low + 1 and bool((index.diff() == 1).all()):
            return cls(range(low, high + 1))
        return cls(range(low, high + 1), index)

    def __len__(self) -> int:
        return len(self.run) if self.index is None else self.index.numel()

    def part(self, part: slice) -> Positions:
        """Some of these positions, counted from the first."""
        return Positions(self.run[part]) if self.index is None else Positions.at(self.index[part])

    def of(self, tensor: Tensor) -> Tensor:
        """The entries of a tensor whose first axis has every position."""
        if self.index is None:
            return tensor[self.run.start : self.run.stop]
        return tensor.index_select(0, self.index.to(tensor.device))

    def within(self, tensor: Tensor, axis: int) -> Tensor:
        """The entries of a tensor whose axis begins at the run's start."""
        if self.index is None:
            return tensor
        return tensor.index_select(axis, self.index.to(tensor.device) - self.run.start)


class ExactHead:
    """One head over one sequence of a batch."""

    def __init__(self, record: LayerRecord, batch: int, head: int) -> None:
        query, key, value = record.query, record.key, record.value
        shared = head // (query.shape[1] // key.shape[1])
        self.batch, self.head = batch, head
        self.query, self.key = query[batch, head], key[batch, shared]
        self.value = None
        if value is not None:
            self.value = value[batch, head // (query.shape[1] // value.shape[1])]
        self.sink = None if record.sinks is None else record.sinks[head]
        self.dtype = torch.float64 if query.dtype == torch.float64 else torch.float32
        self._held: dict[int, tuple[Positions, Tensor]] = {}  # by thread: rows and log-sum-exps
        self.logsum = record.logsum[batch, head]
        self.scale, self.softcap = record.facts.scale, record.facts.softcap
        self.rules = _rules_of_head(record, head)

    def scores(
        self, rows: Positions, columns: Positions, dtype: torch.dtype | None = None
    ) -> Float[Tensor, "rows columns"]:
        """Scaled, capped, biased scores; −∞ where a query may not look."""
        return self._scores(rows, columns, self._working if dtype is None else dtype)

    @functools.cached_property
    def _working(self) -> torch.dtype:
        """The precision that keeps weights right to 2e-5: |score| ≤ scale · ‖q‖ · ‖k‖, but for what
        is added to it, which the log-sum-exp tells."""
        if self.dtype == torch.float64 or not len(self.query) or not len(self.key):
            return self.dtype
        longest = [float(part.float().norm(dim=1).max()) for part in (self.query, self.key)]
        size = abs(self.scale) * longest[0] * longest[1]
        far = bool((self.logsum.abs() > LARGE_SCORE).any())
        return torch.float64 if far or size > LARGE_SCORE else self.dtype

    def _scores(self, rows: Positions, columns: Positions, dtype: torch.dtype) -> Tensor:
        scores = self._products(rows, columns, dtype)
        for part, rule in (("bias", self.rules.bias), ("mask", self.rules.visible)):
            for where, run in _runs(rows, columns):
                spelled = rule(self.batch, run.run, columns.run)
                if spelled is None:
                    continue
                spelled = spelled[self.head if spelled.shape[0] > 1 else 0]
                spelled = columns.within(run.within(spelled, 0), 1).to(scores.device)
                if part == "bias":
                    scores[where] = _added(scores[where], spelled, self.dtype)
                else:
                    scores[where].masked_fill_(~spelled, -torch.inf)
        return scores

    def _products(self, rows: Positions, columns: Positions, dtype: torch.dtype) -> Tensor:
        """Scaled and capped scores."""
        query = rows.of(self.query).to(dtype) * self.scale
        key = columns.of(self.key).to(dtype)
        if dtype == torch.float64:  # the same bits wherever and however the record lies in memory
            query, key = (_fresh(part) for part in (query, key))
        with torch._C._DisableAutocast():  # of whoever looks
            scores = query @ key.T
        if self.softcap is not None:
            scores.div_(self.softcap).tanh_().mul_(self.softcap)
        return scores

    def logsums(self, rows: Positions) -> Float[Tensor, " rows"]:
        """The rows' log-sum-exps; 0, not −∞, for one that sees nothing."""
        if self._working == self.dtype:
            logsum = rows.of(self.logsum).to(self.dtype)
            return torch.where(logsum == -torch.inf, 0.0, logsum)
        held = self._held.get(threading.get_ident())
        if held is None or held[0] is not rows:
            held = self._held[threading.get_ident()] = rows, self._summed(rows)
        return held[1]

    def _summed(self, rows: Positions) -> Float[Tensor, " rows"]:
        """Log-sum-exps computed again in float64: the recorded ones are too coarse."""
        every = Positions(self.reach(rows.run))
        step = max(1, PRECISE // max(1, len(every)))
        parts = [rows.part(slice(start, start + step)) for start in range(0, len(rows), step)]
        sums = [torch.logsumexp(self._scores(part, every, torch.float64), 1) for part in parts]
        total = torch.cat(sums)
        if self.sink is not None:
            total = torch.logaddexp(total, self.sink.double())
        unknown = rows.of(self.logsum).isnan()
        return total.masked_fill(total.isneginf(), 0.0).masked_fill(unknown, torch.nan)

    def logs(self, rows: Positions, columns: Positions) -> Float[Tensor, "rows columns"]:
        """The logarithms of the weights."""
        return self.scores(rows, columns).sub_(self.logsums(rows)[:, None])

    def weights(
        self, rows: Positions, columns: Positions, *, precise: bool = False
    ) -> Float[Tensor, "rows columns"]:
        """The weights; ``precise`` ones from whole rows in float64."""
        if not precise:
            return self.logs(rows, columns).exp_()
        step = max(1, PRECISE // max(1, self.key.shape[0]))
        parts = [rows.part(slice(start, start + step)) for start in range(0, len(rows), step)]
        tiles = [self._tile(part, columns) for part in parts]
        return tiles[0] if len(tiles) == 1 else torch.cat(tiles or [self._tile(rows, columns)])

    def _tile(self, rows: Positions, columns: Positions) -> Tensor:
        whole = self.plain(rows).to(self.dtype)
        if columns.index is None:
            return whole[:, columns.run.start : columns.run.stop]
        return whole.index_select(1, columns.index.to(whole.device))

    def plain(self, rows: Positions) -> Float[Tensor, "rows key"]:
        """The softmax of whole rows straight from the formula, in float64."""
        reached = self.reach(rows.run)
        scores = self._scores(rows, Positions(reached), torch.float64)
        return _softmax([self], scores[None], rows, reached)[0]

    def reach(self, rows: range) -> range:
        """Keys outside of which these rows see nothing, as far as the rules tell at once."""
        low, high, first = self.key.shape[0], 0, 0
        for piece in self.rules.pieces:
            span = range(max(rows.start - first, 0), min(rows.stop - first, piece.rows))
            first += piece.rows
            if len(span):
                reached = _reach(piece.mask, self.batch, span, piece.keys)
                low, high = min(low, reached.start), max(high, reached.stop)
        return range(low, max(low, min(high, self.key.shape[0])))

    def blocks(self, rows: Positions) -> Iterator[range]:
        """Runs of keys that together hold everything these rows see."""
        reached = self.reach(rows.run)
        for first in range(reached.start, reached.stop, BLOCK_COLUMNS):
            yield range(first, min(first + BLOCK_COLUMNS, reached.stop))


def plain_of_heads(
    heads: Sequence[ExactHead], rows: Positions
) -> Float[Tensor, "head rows key"] | None:
    """``plain`` of several heads of a record, number for number, with all but the products done
    at once: of a short text that is a third of the time. None if a bias is added to the scores."""
    first = heads[0]
    if any(piece.bias is not None for piece in first.rules.pieces):
        return None
    reached = Positions(first.reach(rows.run))
    scores = torch.stack([head._products(rows, reached, torch.float64) for head in heads])
    for where, run in _runs(rows, reached):
        seen = first.rules.visible(first.batch, run.run, reached.run)
        if seen is not None:
            seen = run.within(seen, 1).to(scores.device)
            seen = seen[[head.head for head in heads]] if len(seen) > 1 else seen
            scores[:, where].masked_fill_(~seen, -torch.inf)
    return _softmax(heads, scores, rows, reached.run)


def _softmax(
    heads: Sequence[ExactHead],
    scores: Float[Tensor, "head rows reached"],
    rows: Positions,
    reached: range,
) -> Float[Tensor, "head rows key"]:
    """The weights of whole rows from their scores on the keys that they reach."""
    sinks = [head.sink for head in heads if head.sink is not None]
    if sinks:
        sink = torch.stack(sinks).double()[:, None, None].expand(-1, scores.shape[1], 1)
        weights = torch.softmax(torch.cat([scores, sink], dim=2), dim=2)[:, :, :-1]
    elif scores.shape[2] == 0:
        weights = scores
    else:
        weights = torch.softmax(scores, dim=2).nan_to_num(0.0)
    weights = functional.pad(weights, (reached.start, heads[0].key.shape[0] - reached.stop))
    unknown = torch.stack([rows.of(head.logsum).isnan() for head in heads]).to(weights.device)
    return weights.masked_fill(unknown[:, :, None], torch.nan)  # as in the model


def _added(scores: Tensor, numbers: Tensor, dtype: torch.dtype) -> Tensor:
    """Scores with a bias. A huge number swallows digits of the score in the precision in which
    models and kernels add it: so do we, in whatever precision the rest is computed."""
    if scores.dtype == dtype or not bool((numbers.abs() > HUGE).any()):
        return scores + numbers
    rounded = (scores.to(dtype) + numbers.to(dtype)).to(scores.dtype)
    return torch.where(numbers.abs() > HUGE, rounded, scores + numbers)


def _fresh(tensor: Tensor) -> Tensor:
    """A copy side by side: products may round by the layout and the address of what they read."""
    return tensor.clone(memory_format=torch.contiguous_format)


def _rules_of_head(record: LayerRecord, head: int) -> LayerRecord:
    """The record, with biases by distance for this head alone: they are spelled out cell by cell,
    and doing that for every head would multiply the work by their number."""
    pieces = record.pieces
    if not any(piece.bias is not None and piece.bias.diagonals is not None for piece in pieces):
        return record
    alone = [
        piece.heads([head])
        if piece.bias is not None and piece.bias.diagonals is not None
        else piece
        for piece in pieces
    ]
    return LayerRecord(record.facts, record.query, record.key, record.logsum, pieces=alone)


def _runs(rows: Positions, columns: Positions) -> Iterator[tuple[slice, Positions]]:
    """The rows in groups whose masks can be spelled out from one run without waste."""
    if rows.index is None or len(rows.run) * len(columns.run) <= DENSE_MASK:
        yield slice(0, len(rows)), rows
        return
    for place, row in enumerate(rows.index.tolist()):
        yield slice(place, place + 1), Positions(range(row, row + 1))


def _reach(mask: RowMask | None, batch: int, rows: range, keys: int) -> range:
    if mask is None or mask.dense is not None:
        return range(keys)
    part = slice(rows.start, rows.stop)
    low, high = (side[batch if side.shape[0] > 1 else 0][part] for side in (mask.low, mask.high))
    if mask.whole is not None and bool(mask.whole[batch if len(mask.whole) > 1 else 0][part].any()):
        return range(keys)
    seeing = low < high
    if not bool(seeing.any()):
        return range(0)
    return range(max(0, int(low[seeing].min())), min(int(high[seeing].max()), keys))
