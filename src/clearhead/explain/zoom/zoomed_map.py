"""A head's map with every single weight, and all levels above it, streamed tile by tile.

Rows are computed in runs of 256; what is pooled from them waits only until the next run comes. So
memory is linear in tokens. Numbers are the same as in all other pictures: from whole rows.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from clearhead.explain.mark_weights import weights_between
from clearhead.explain.pictures import Aids, Mark, Pool, shown_number
from clearhead.explain.sources import pooled as pooled_heads
from clearhead.trace.head_view import HeadView
from clearhead.trace.zoom.grid import TILE, Grid
from clearhead.trace.zoom.pooling import MASKED, pooled_cells
from clearhead.trace.zoom.tiles import Strongest

Counted = Callable[[int, int], None]
LISTED = 20  # of the strongest single weights


@dataclass(frozen=True, eq=False)
class LevelTile:
    """A tile of a level; for "mean" its sums, which ``trace.zoom.pooling.divided`` divides."""

    level: int
    row: int
    column: int
    numbers: Float[Tensor, "row column"]


@dataclass(eq=False)
class ZoomedMap:
    """The whole map of one head, or of several as one, at every level of a deep zoom."""

    view: HeadView
    rows: Sequence[Mark]
    columns: Sequence[Mark]
    hidden: tuple[int, ...]
    aids: Aids
    strongest: list[Strongest] = field(default_factory=list)  # known when all tiles have come,
    hidden_mass: list[float] = field(default_factory=list)  # of each query: likewise

    @property
    def grid(self) -> Grid:
        """Its levels and tiles."""
        return Grid(len(self.rows), len(self.columns))

    @property
    def pool(self) -> Pool:
        """What a cell of several weights holds."""
        return self.aids.pool

    def tiles(self, progress: Counted | None = None) -> Iterator[LevelTile]:
        """Every tile of every level, each once; ``progress`` hears of rows done and rows in all."""
        best, masses = _Best(LISTED), []
        levels = _Levels(self.grid, self.pool)
        for start in range(0, len(self.rows), TILE):
            rows = slice(start, min(start + TILE, len(self.rows)))
            numbers, mass = self._numbers(rows)
            masses += mass
            yield from _cut(0, start // TILE, numbers)
            numbers[:, list(self.hidden)] = numbers[:, list(self.hidden)].clamp(max=0.0)
            best.add(numbers, start)
            yield from levels.add(numbers)
            if progress is not None:
                progress(rows.stop, len(self.rows))
        yield from levels.rest()
        self.strongest, self.hidden_mass = best.found(), masses

    def _numbers(self, rows: slice) -> tuple[Float[Tensor, "row key"], list[float]]:
        """Single weights of some queries, several heads as one; ``MASKED`` where there is none.

        Also what each of them gives to hidden columns: of several heads their mean.
        """
        run = range(rows.start, rows.stop)
        weights = seen_weights(self.view, (self.rows, self.columns), rows, self.aids)
        mass = weights[:, :, list(self.hidden)].sum(dim=2).mean(dim=0).tolist()
        numbers, _ = pooled_heads(iter([weights]), self.pool)
        seen = self.view.record.visible(self.view.batch, run, range(len(self.columns)))
        if seen is None:
            return numbers, mass
        heads = seen[list(self.view.places)] if seen.shape[0] > 1 else seen
        return numbers.masked_fill(~heads.any(dim=0).cpu(), MASKED), mass


def seen_weights(
    view: HeadView, axes: tuple[Sequence[Mark], Sequence[Mark]], rows: slice, aids: Aids
) -> Float[Tensor, "head row key"]:
    """The weights of some rows; nobody computes what lies in the future of all of them."""
    keys, facts = len(axes[1]), view.record.facts
    end = keys - len(axes[0]) + rows.stop if facts.causal and facts.kind == "self" else keys
    seen = weights_between(view, axes[0][rows], axes[1][:end], aids.measure, limit=None)
    return torch.nn.functional.pad(seen, (0, keys - end))


class _Levels:
    """Levels above the single weights; each holds at most one row of tiles at a time."""

    def __init__(self, grid: Grid, pool: Pool) -> None:
        self._pool = pool
        self._waiting: list[list[Tensor]] = [[] for _ in range(grid.levels)]
        self._emitted = [0] * grid.levels

    def add(self, numbers: Tensor, level: int = 0) -> Iterator[LevelTile]:
        """Rows of one level, as part of the next one."""
        if level + 1 == len(self._waiting):
            return
        wide = numbers if self._pool == "max" else numbers.double()
        self._waiting[level + 1].append(pooled_cells(wide, 2, self._pool))
        if sum(len(part) for part in self._waiting[level + 1]) >= TILE:
            yield from self._emit(level + 1)

    def rest(self) -> Iterator[LevelTile]:
        """What still waits at the end, from the lowest level on."""
        for level in range(1, len(self._waiting)):
            if self._waiting[level]:
                yield from self._emit(level)

    def _emit(self, level: int) -> Iterator[LevelTile]:
        cells = torch.cat(self._waiting[level])
        self._waiting[level] = []
        yield from _cut(level, self._emitted[level], cells)
        self._emitted[level] += 1
        yield from self.add(cells, level)


class _Best:
    """The largest single numbers so far."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._heap: list[tuple[float, int, int]] = []

    def add(self, numbers: Float[Tensor, "row key"], start: int) -> None:
        top = numbers.flatten().topk(min(self._count, numbers.numel()))
        for number, place in zip(top.values.tolist(), top.indices.tolist(), strict=True):
            if number > 0:
                row, column = divmod(place, numbers.shape[1])
                heapq.heappush(self._heap, (number, -(start + row), -column))
                if len(self._heap) > self._count:
                    heapq.heappop(self._heap)

    def found(self) -> list[Strongest]:
        order = sorted(self._heap, reverse=True)
        return [Strongest(-row, -column, shown_number(number)) for number, row, column in order]


def _cut(level: int, row: int, cells: Float[Tensor, "row column"]) -> Iterator[LevelTile]:
    for column in range(-(-cells.shape[1] // TILE)):
        part = cells[:, column * TILE : (column + 1) * TILE]
        yield LevelTile(level, row, column, part.clone())
