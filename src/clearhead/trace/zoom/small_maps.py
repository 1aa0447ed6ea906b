"""All heads as small maps of the same text, computed progressively.

The whole map of every head of a long text takes minutes to hours. So every head gets a picture of a
few of its queries first, spread over the text, then of twice as many, until all are counted. A cell
holds the largest weight of the queries so far; ``counted`` says how many those are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from clearhead.trace.exact import ExactHead, Positions
from clearhead.trace.head_view import HeadView
from clearhead.trace.workers import run_in_threads
from clearhead.trace.zoom.grid import Grid
from clearhead.trace.zoom.pooling import MASKED, PENDING
from clearhead.trace.zoom.pyramid import spread

SIZE = 64  # cells on a side, at most
ROWS = 64  # queries that one step computes


@dataclass(frozen=True)
class SmallMap:
    """A head's whole map in at most ``SIZE`` × ``SIZE`` cells: the largest weights so far."""

    head: str
    numbers: Float[Tensor, "row column"]  # ``MASKED``, ``PENDING`` or a weight
    counted: float  # the share of the queries; 1: every weight counts

    def __repr__(self) -> str:
        size = " × ".join(map(str, self.numbers.shape))
        return f"SmallMap({self.head}: {size} cells, {self.counted:.0%} of the queries)"


def small_maps(
    views: Sequence[HeadView], *, hidden: Sequence[int] = (), size: int = SIZE
) -> Iterator[SmallMap]:
    """Every head of the views, again and again, each time with more of its queries.

    To stop is to ask for no more. All heads have their first picture before any gets its second.
    """
    heads = [_Head(view, place, hidden, size) for view in views for place in view.places]
    for turn in range(max((len(head.turns) for head in heads), default=0)):
        for head in heads:
            if turn < len(head.turns):
                yield from head.counted(head.turns[turn])


class _Head:
    def __init__(self, view: HeadView, place: int, hidden: Sequence[int], size: int) -> None:
        number = view.record.head_numbers[place]
        self.name = f"{view.record.facts.name}H{number}"
        self._head = ExactHead(view.record, view.batch, place)
        self._rows, self._keys = self._head.query.shape[0], self._head.key.shape[0]
        self._hidden = torch.tensor(list(hidden), dtype=torch.long)
        longest = max(self._rows, self._keys)
        self._level = (-(-longest // size) - 1).bit_length()
        self.numbers = torch.full(Grid(self._rows, self._keys).cells(self._level), PENDING)
        self._seen = 0
        self.turns = _turns(1 << self._level)

    def counted(self, offsets: Sequence[int]) -> Iterator[SmallMap]:
        """Some more queries of each cell, by their places in it."""
        side = 1 << self._level
        starts = torch.arange(0, self._rows, side)
        places = (starts[:, None] + torch.tensor(offsets)).flatten()
        places = places[places < self._rows].sort().values
        for start in range(0, len(places), ROWS):
            rows = places[start : start + ROWS]
            run_in_threads(self._count, [rows], rows.device)  # alone on one thread
            self._seen += len(rows)
            yield SmallMap(self.name, self.numbers.clone(), self._seen / self._rows)

    def _count(self, rows: Tensor) -> None:
        some, side = Positions.at(rows), 1 << self._level
        reached = self._head.reach(some.run)
        columns = range(reached.start // side * side, reached.stop)
        logs = self._head.logs(some, Positions(columns)).cpu()
        if len(columns) == 0:
            logs = logs.new_full((len(rows), side), -torch.inf)
        inside = self._hidden[(self._hidden >= columns.start) & (self._hidden < columns.stop)]
        masked = logs.isneginf()
        logs[:, inside - columns.start] = -1e30
        logs.masked_fill_(masked, -torch.inf)
        logs = functional.pad(logs, (0, -logs.shape[1] % side), value=-torch.inf)
        cells = logs.view(len(logs), -1, side).amax(dim=2)
        found = torch.where(cells.isneginf(), MASKED, cells.exp()).float()
        whole = found.new_full((len(rows), self.numbers.shape[1]), MASKED)
        first = columns.start // side
        whole[:, first : first + found.shape[1]] = found[:, : whole.shape[1] - first]
        # Masked so far is no promise: a later query of the cell may see a key of it.
        known = self.numbers[rows // side]
        self.numbers[rows // side] = torch.where(known == PENDING, MASKED, known)
        places = (rows // side)[:, None].expand_as(whole)
        self.numbers.scatter_reduce_(0, places, whole, "amax", include_self=True)


def _turns(side: int) -> list[list[int]]:
    """The places in a cell, one, then one more, then two, then four …, spread over the cell."""
    order, turns, done = spread(side), [], 0
    while done < side:
        turns.append(order[done : max(1, 2 * done)])
        done = max(1, 2 * done)
    return turns
