"""The pyramid: cells too large to be computed while somebody waits, computed once, step by step.

Its lowest level is kept whole, at most 4,096 × 4,096 cells (64 MB), whatever the length of the
text; larger cells are pooled from it. Rows are computed in an order that is spread over the whole
map, so that a picture appears at once and becomes complete.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from clearhead.trace.workers import run_in_threads
from clearhead.trace.zoom.grid import Grid
from clearhead.trace.zoom.heads import ZoomHeads
from clearhead.trace.zoom.pooling import PENDING, pooled_cells

MOST_CELLS = 4096  # on a side of the lowest level
QUICK = 3  # the highest level whose tiles are always computed on demand
STEP_WEIGHTS = 1 << 22  # that one step computes: who waits for a tile does not wait long for it


@dataclass(frozen=True)
class Progress:
    """How far a computation is; the unit is its own."""

    done: int
    total: int


class Pyramid:
    """The cells of level ``base`` and above of one map."""

    def __init__(self, heads: ZoomHeads, grid: Grid) -> None:
        self._heads, self._grid = heads, grid
        least = (-(-max(grid.rows, grid.columns) // MOST_CELLS) - 1).bit_length()
        self.base = max(QUICK + 1, least)
        self._side = max(
            1, STEP_WEIGHTS // max(1, grid.columns) >> self.base
        )  # rows of cells in a step
        self._steps = -(-grid.cells(self.base)[0] // self._side) if self.needed else 0
        self._done: set[int] = set()
        self._cells: Tensor | None = None

    @property
    def needed(self) -> bool:
        """False if every level is computed on demand."""
        return self.base < self._grid.levels

    @property
    def progress(self) -> Progress:
        """How many of its steps are done."""
        return Progress(len(self._done), self._steps)

    @property
    def complete(self) -> bool:
        """True if nothing is left to compute."""
        return len(self._done) == self._steps

    @property
    def nbytes(self) -> int:
        """Memory of the cells."""
        return 0 if self._cells is None else self._cells.nbytes

    @property
    def cells(self) -> Float[Tensor, "row column"]:
        """The lowest level; ``PENDING`` where it is not computed yet."""
        if self._cells is None:
            shape = self._grid.cells(self.base)
            self._cells = torch.full(shape, PENDING, device=self._heads.device)
        return self._cells

    def build(self) -> Generator[Progress, None, None]:
        """Compute what is missing, a step at a time: to stop is to ask for no more."""
        missing = [step for step in spread(self._steps) if step not in self._done]
        together = max(1, torch.get_num_threads())
        for first in range(0, len(missing), together):
            some = missing[first : first + together]
            run_in_threads(self._compute, some, self._heads.device)
            self._done.update(some)
            yield self.progress

    def tile(self, level: int, rows: range, columns: range) -> Float[Tensor, "row column"]:
        """The cells of some queries and keys, pooled from the lowest level."""
        side = 1 << self.base
        down, across = (slice(run.start // side, -(-run.stop // side)) for run in (rows, columns))
        side, found = 1 << (level - self.base), []

        def pool(cells: Tensor) -> None:
            found.append(pooled_cells(cells, side, self._heads.pool))

        run_in_threads(pool, [self.cells[down, across]], self._heads.device)  # alone on one thread
        return found[0]

    def known(self, rows: range) -> bool:
        """True if the cells of these queries are complete."""
        height = self._side << self.base
        steps = range(rows.start // height, -(-rows.stop // height))
        return all(step in self._done for step in steps)

    def _compute(self, step: int) -> None:
        height = self._side << self.base
        rows = range(step * height, min((step + 1) * height, self._grid.rows))
        first = step * self._side
        found = self._heads.cells(rows, range(self._grid.columns), self.base)
        self.cells[first : first + found.shape[0]] = found


def spread(count: int) -> list[int]:
    """All numbers below ``count``, each far from those before it: the bits turned around.

    >>> spread(6)
    [0, 4, 2, 1, 5, 3]
    """
    bits = max(1, (count - 1).bit_length())
    turned = (int(format(number, f"0{bits}b")[::-1], 2) for number in range(1 << bits))
    return [number for number in turned if number < count]
