"""The numbers of any block of a map, in cells of any level: of one head, or of several as one.

    number = exp(score + key_log − row_log)

For attention weights ``row_log`` is the recorded log-sum-exp and ``key_log`` is nothing. For
weight·‖v‖, each row divided by its sum, ``key_log`` is log ‖v‖ and ``row_log`` the log-sum-exp of
score + log ‖v‖; that is computed once for each row, and kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from clearhead.errors import InputError
from clearhead.trace.exact import BLOCK_COLUMNS, BLOCK_ROWS, PRECISE, ExactHead, Positions
from clearhead.trace.head_view import HeadView
from clearhead.trace.pooled_map import Pool
from clearhead.trace.workers import run_in_threads
from clearhead.trace.zoom.pooling import MASKED, largest_cells, summed_cells

NOTHING = -1e30  # a score whose weight is 0, although the key may be seen
BAND = 256  # rows whose row_log is computed together


class ZoomHeads:
    """Heads of one view as one map. ``hidden`` columns count as 0 in cells of level 1 and more."""

    def __init__(
        self, view: HeadView, pool: Pool, hidden: Sequence[int] = (), *, by_value: bool = False
    ) -> None:
        self.view, self.pool = view, pool
        self.heads = [ExactHead(view.record, view.batch, place) for place in view.places]
        self._hidden = torch.tensor(sorted(hidden), dtype=torch.long)
        self._rows = [RowLogs(head, _value_logs(head, view.name, by_value)) for head in self.heads]
        self.size = (self.heads[0].query.shape[0], self.heads[0].key.shape[0])
        self.device = self.heads[0].query.device

    def cells(
        self, rows: range, columns: range, level: int
    ) -> Float[Tensor, "row_cell column_cell"]:
        """The cells of a block whose edges are edges of cells. For "mean" the sums of the cells."""
        side = 1 << level
        shape = [-(-len(run) // side) for run in (rows, columns)]
        cells = torch.full(shape, MASKED, device=self.device)

        def fill(part: tuple[range, range]) -> None:
            down, across = part
            found = self._block(down, across, level)
            if found is not None:
                top, left = ((run.start - whole.start) // side for run, whole in
                             zip(part, (rows, columns), strict=True))  # fmt: skip
                cells[top : top + found.shape[0], left : left + found.shape[1]] = found

        run_in_threads(fill, list(_blocks(rows, columns, side)), self.device)
        return cells

    def _block(self, rows: range, columns: range, level: int) -> Tensor | None:
        """One block of all heads as one; None if no query of it sees a key of it."""
        found = None
        for head, row_logs in zip(self.heads, self._rows, strict=True):
            reached = head.reach(rows)
            if reached.start >= columns.stop or columns.start >= reached.stop:
                continue
            one = self._numbers(head, row_logs, (rows, columns), level)
            found = one if found is None else self._joined(found, one)
        if found is not None and self.pool == "mean":
            found = torch.where(found < 0, found, found / len(self.heads))
        return found

    def _numbers(
        self, head: ExactHead, row_logs: RowLogs, block: tuple[range, range], level: int
    ) -> Tensor:
        places = (Positions(block[0]), Positions(block[1]))
        # Single weights are what people read: their scores are computed in float64.
        logs = head.scores(*places, dtype=torch.float64 if level == 0 else None)
        if row_logs.key_log is not None:
            logs += row_logs.key_log[block[1].start : block[1].stop].to(logs.dtype)
        logs -= row_logs.of(block[0])[:, None].to(logs.dtype)
        if level > 0:
            self._hide(logs, block[1])
        largest = largest_cells(logs, 1 << level, -torch.inf)
        single = self.pool == "max" or level == 0
        numbers = largest.exp() if single else summed_cells(logs.exp_(), 1 << level)
        return torch.where(largest.isneginf(), MASKED, numbers).float()

    def _hide(self, logs: Tensor, columns: range) -> None:
        inside = (self._hidden >= columns.start) & (self._hidden < columns.stop)
        places = (self._hidden[inside] - columns.start).to(logs.device)
        if places.numel():
            part = logs[:, places]
            logs[:, places] = torch.where(part.isneginf(), part, NOTHING)

    def _joined(self, one: Tensor, other: Tensor) -> Tensor:
        """Two heads as one: numbers win over masked cells."""
        if self.pool == "max":
            return torch.maximum(one, other)
        both = torch.maximum(one, other)
        return torch.where(both < 0, both, one.clamp(min=0.0) + other.clamp(min=0.0))


class RowLogs:
    """What is subtracted from each row of scores; computed on first use, linear in tokens."""

    def __init__(self, head: ExactHead, key_log: Float[Tensor, " key"] | None) -> None:
        self.head, self.key_log = head, key_log
        # One tensor for all: small ones, kept for long, would keep freed memory from being reused.
        self._logs = torch.empty(head.query.shape[0], dtype=torch.float64, device=head.query.device)
        self._known: set[int] = set()

    def of(self, rows: range) -> Float[Tensor, " rows"]:
        """Those of a run of rows."""
        for band in range(rows.start // BAND, -(-rows.stop // BAND)):
            if band not in self._known:  # two threads may compute the same numbers: no harm
                stop = min((band + 1) * BAND, len(self._logs))
                places = Positions(range(band * BAND, stop))
                self._logs[band * BAND : stop] = self._computed(places)
                self._known.add(band)
        return self._logs[rows.start : rows.stop]

    def _computed(self, rows: Positions) -> Tensor:
        if self.key_log is None:
            return self.head.logsums(rows)
        every = Positions(self.head.reach(rows.run))
        step = max(1, PRECISE // max(1, len(every)))
        added = self.key_log[every.run.start : every.run.stop]
        sums = []
        for start in range(0, len(rows), step):
            part = rows.part(slice(start, start + step))
            sums.append(torch.logsumexp(self.head.scores(part, every, torch.float64) + added, 1))
        total = torch.cat(sums)
        return total.masked_fill(total.isneginf(), 0.0)


def _value_logs(head: ExactHead, name: str, by_value: bool) -> Float[Tensor, " key"] | None:
    if not by_value:
        return None
    if head.value is None:
        raise InputError(
            f"{name}: weight·‖v‖ needs the values, and this trace was made without them.",
            hint="watch(model, values=True) keeps them.",
        )
    # A value of length 0 takes nothing along; −∞ would say that the key is masked.
    lengths: Tensor = torch.linalg.vector_norm(head.value.double(), dim=1)
    return lengths.log().clamp(min=NOTHING)


def _blocks(rows: range, columns: range, side: int) -> Iterator[tuple[range, range]]:
    """Blocks that stay in the cache between two passes, with edges that are edges of cells."""
    down, across = (max(side, size // side * side) for size in (BLOCK_ROWS, BLOCK_COLUMNS))
    for top in range(rows.start, rows.stop, down):
        for left in range(columns.start, columns.stop, across):
            yield (
                range(top, min(top + down, rows.stop)),
                range(left, min(left + across, columns.stop)),
            )
