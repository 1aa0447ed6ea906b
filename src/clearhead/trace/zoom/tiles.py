"""``Tiles``: the deep zoom of a head's map, from the whole down to single exact weights.

A tile of 256 × 256 cells is computed when somebody asks for it, from q, k and log-sum-exp, and kept
as long as there is room. Tiles of a few levels are quick at any length; those of larger cells come
out of a pyramid, which ``build`` computes step by step.
"""

from __future__ import annotations

import heapq
import threading
from collections import OrderedDict
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from clearhead.arguments import one_of, whole_number
from clearhead.errors import InputError
from clearhead.trace.head_view import HeadView
from clearhead.trace.pooled_map import POOLS, Pool
from clearhead.trace.zoom.grid import Grid
from clearhead.trace.zoom.heads import ZoomHeads
from clearhead.trace.zoom.pooling import divided
from clearhead.trace.zoom.pyramid import Progress, Pyramid

CACHE_BYTES = 64_000_000
SORTED_ROWS = 128  # of cells
EXPANDED = 4096  # cells that are looked into for the strongest weights, at most


@dataclass(frozen=True)
class Tile:
    """At most 256 × 256 cells. ``MASKED`` (−1): no query sees a key there; ``PENDING`` (−0.5): not
    computed yet. If it is not ``complete``, numbers are those of what was computed so far."""

    level: int
    rows: range  # the queries
    columns: range  # the keys
    numbers: Float[Tensor, "row column"]
    complete: bool = True

    def __repr__(self) -> str:
        size = " × ".join(map(str, self.numbers.shape))
        cells = f"{1 << self.level} × {1 << self.level}"
        return f"Tile({size} cells of {cells} weights, queries {self.rows}, keys {self.columns})"


@dataclass(frozen=True)
class Strongest:
    """A single weight and its place."""

    row: int
    column: int
    weight: float


class Tiles:
    """The tiles of one head, or of several heads of a layer as one.

    Args:
        view: the heads, ``seen["L16H5"]``.
        pool: what a cell of several weights holds: the largest, their mean or their sum. Several
            heads become one in the same way.
        hidden: columns that count as 0 in cells of several weights; single weights are as they are.
        by_value: weight·‖v‖, each row divided by its sum, instead of weights.
        cache_bytes: of the tiles that are kept, at most.

    Raises:
        InputError: ``by_value`` without kept values, or no such pool.
    """

    def __init__(
        self,
        view: HeadView,
        pool: Pool = "max",
        *,
        hidden: Sequence[int] = (),
        by_value: bool = False,
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        one_of("pool", pool, POOLS)
        self.pool = pool
        self._heads = ZoomHeads(view, pool, hidden, by_value=by_value)
        self.grid = Grid(*self._heads.size)
        self.pyramid = Pyramid(self._heads, self.grid)
        self.hidden = tuple(sorted(hidden))
        self._room = whole_number("cache_bytes", cache_bytes, least=0)
        self._kept: OrderedDict[tuple[int, int, int], Tile] = OrderedDict()
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        name = self._heads.view.name
        return f"Tiles({name}: {self.grid.rows:,} × {self.grid.columns:,}, {self.levels} levels)"

    @property
    def levels(self) -> int:
        """How many levels there are; the last is one tile."""
        return self.grid.levels

    @property
    def complete(self) -> bool:
        """True if tiles of all levels are complete; ``build`` makes them so."""
        return self.pyramid.complete

    @property
    def cached_bytes(self) -> int:
        """Of the tiles that are kept."""
        with self._lock:
            return sum(_bytes(tile) for tile in self._kept.values())

    @property
    def nbytes(self) -> int:
        """Memory of the tiles that are kept, and of the pyramid."""
        return self.cached_bytes + self.pyramid.nbytes

    def build(self) -> Generator[Progress, None, None]:
        """Compute the pyramid step by step; for 2,048 tokens or fewer there is none.

        To stop is to ask for no more; what is done is kept, and another ``build`` goes on there.
        """
        return self.pyramid.build()

    def tile(self, level: int, row: int, column: int) -> Tile:
        """A tile by its place among the tiles of a level."""
        rows, columns = self.grid.span(level, row, column)
        place = (level, row, column)
        with self._lock:
            kept = self._kept.get(place)
            if kept is not None:
                self._kept.move_to_end(place)
                return kept
        made = self._made(level, rows, columns)
        if made.complete:
            self._keep(place, made)
        return made

    def strongest(self, count: int = 20) -> list[Strongest]:
        """The largest single weights outside hidden columns, of what was computed so far.

        Only with ``pool="max"``: sums and means do not tell where the largest weight is.
        """
        count = whole_number("count", count, least=1)
        if self.pool != "max":
            raise InputError('the strongest weights are found in tiles with pool="max".')
        level = min(self.pyramid.base, self.levels - 1)
        found: list[tuple[float, int, int]] = []
        for number, cell in _largest(self._coarse(level), EXPANDED):
            if number <= 0 or (len(found) == count and found[0][0] >= number):
                break
            for weight, row, column in self._inside(level, cell, count):
                heapq.heappush(found, (weight, -row, -column))
                if len(found) > count:
                    heapq.heappop(found)
        return [Strongest(-row, -column, weight) for weight, row, column in sorted(found)[::-1]]

    def _made(self, level: int, rows: range, columns: range) -> Tile:
        if level < self.pyramid.base:
            numbers, complete = self._heads.cells(rows, columns, level), True
        else:
            complete = self.pyramid.known(rows)
            numbers = self.pyramid.tile(level, rows, columns)
        if self.pool == "mean" and level > 0:
            numbers = divided(numbers, rows, columns, 1 << level)
        return Tile(level, rows, columns, numbers.cpu(), complete)

    def _coarse(self, level: int) -> Float[Tensor, "row column"]:
        """All cells of a level that fit into memory."""
        if level == self.pyramid.base:
            return self.pyramid.cells
        return self.tile(level, 0, 0).numbers  # the last level is one tile

    def _inside(
        self, level: int, cell: tuple[int, int], count: int
    ) -> Iterator[tuple[float, int, int]]:
        """The largest single weights of one cell."""
        side, (row, column) = 1 << level, cell
        rows = range(row * side, min((row + 1) * side, self.grid.rows))
        columns = range(column * side, min((column + 1) * side, self.grid.columns))
        weights = self._heads.cells(rows, columns, 0)
        for place in self.hidden:
            if place in columns:
                weights[:, place - columns.start] = 0.0
        best = weights.flatten().topk(min(count, weights.numel()))
        for number, place in zip(best.values.tolist(), best.indices.tolist(), strict=True):
            if number > 0:
                down, across = divmod(place, len(columns))
                yield number, rows.start + down, columns.start + across

    def _keep(self, place: tuple[int, int, int], tile: Tile) -> None:
        with self._lock:
            self._kept[place] = tile
            while self._kept and sum(map(_bytes, self._kept.values())) > self._room:
                self._kept.popitem(last=False)


def _largest(cells: Float[Tensor, "row column"], count: int) -> list[tuple[float, tuple[int, int]]]:
    """The largest cells with their places, the largest first; some rows at a time, as sorting
    takes several times the memory of what is sorted."""
    numbers, places = [], []
    for start in range(0, cells.shape[0], SORTED_ROWS):
        part = cells[start : start + SORTED_ROWS].flatten()
        top = part.topk(min(count, part.numel()))
        numbers.append(top.values)
        places.append(top.indices + start * cells.shape[1])
    every = torch.cat(numbers)
    order = every.topk(min(count, every.numel()))
    chosen = torch.cat(places)[order.indices].tolist()
    return [
        (number, divmod(place, cells.shape[1]))
        for number, place in zip(order.values.tolist(), chosen, strict=True)
    ]


def _bytes(tile: Tile) -> int:
    return tile.numbers.numel() * tile.numbers.element_size()


__all__ = ["Progress", "Strongest", "Tile", "Tiles"]
