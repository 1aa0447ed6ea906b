"""The whole picture of a head at any length: every weight counts, memory stays linear in tokens.

The map of a long text has more weights than a screen has points: 32,000 tokens make a billion. So
neighbouring rows and columns share a cell, and a cell shows the largest of its weights ("max": a
single bright weight survives), their sum, or their mean. Blocks of the map are computed, pooled and
dropped. For "max" the exponential is taken once for each cell, not for each weight: it keeps order.

Where the sizes do not divide, cells differ by one row or column. Columns are then computed with the
last key of a smaller cell twice, so that all cells of a block have one width; the copy is no larger
than the largest, and is put to 0 before anything is summed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from clearhead.arguments import whole_number
from clearhead.trace.exact import BLOCK_COLUMNS, BLOCK_ROWS, ExactHead, Positions
from clearhead.trace.workers import run_in_threads

Pool: TypeAlias = Literal["max", "mean", "sum"]
POOLS: tuple[Pool, ...] = ("max", "mean", "sum")


@dataclass(frozen=True)
class PooledMap:
    """A head's map in cells: cell (r, c) holds rows ``row_edges[r]`` up to ``row_edges[r + 1]``
    (exclusive) and columns likewise. Invisible places count as weight 0."""

    cells: Float[Tensor, "*head row column"]
    row_edges: list[int]
    column_edges: list[int]
    pool: Pool

    def __repr__(self) -> str:
        rows, columns = self.cells.shape[-2:]
        heads = f"{self.cells.shape[0]} heads, " if self.cells.ndim == 3 else ""
        queries = self.row_edges[-1] - self.row_edges[0]
        keys = self.column_edges[-1] - self.column_edges[0]
        return (
            f"PooledMap({heads}{rows:,} × {columns:,} cells, the {self.pool} of "
            f"{queries:,} queries × {keys:,} keys)"
        )

    def cell(self, row: int, column: int) -> tuple[range, range]:
        """The rows and the columns of the attention map that a cell stands for."""
        row = whole_number("row (of cells)", row, least=0, most=len(self.row_edges) - 2)
        column = whole_number("column (of cells)", column, least=0, most=len(self.column_edges) - 2)
        return (
            range(self.row_edges[row], self.row_edges[row + 1]),
            range(self.column_edges[column], self.column_edges[column + 1]),
        )


@dataclass(frozen=True)
class Cells:
    """A run of positions cut into cells whose lengths differ by one at most."""

    run: range
    count: int

    @classmethod
    def of(cls, run: range, size: int) -> Cells:
        """At most ``size`` cells."""
        return cls(run, min(size, len(run)))

    @property
    def edges(self) -> list[int]:
        """Where cells begin; the last is the end."""
        return [self.edge(cell) for cell in range(self.count + 1)]

    @property
    def longest(self) -> int:
        """Positions in the largest cell."""
        return -(-len(self.run) // self.count)

    def edge(self, cell: int) -> int:
        """Where a cell begins."""
        return self.run.start + cell * len(self.run) // self.count

    def groups(self, positions: int) -> Iterator[range]:
        """Consecutive cells that have about so many positions together."""
        step = max(1, positions // self.longest)
        for first in range(0, self.count, step):
            yield range(first, min(first + step, self.count))

    def touching(self, cells: range, reached: range) -> bool:
        """True if these cells have a position within ``reached``."""
        return self.edge(cells.start) < reached.stop and reached.start < self.edge(cells.stop)

    def cut(self, parts: int) -> Cells:
        """Every cell in so many parts."""
        return Cells(self.run, self.count * parts)

    def sizes(self) -> Float[Tensor, " cell"]:
        """How many positions each cell has."""
        return torch.tensor(self.edges, dtype=torch.float64).diff()

    def padded(self, cells: range) -> Padded:
        """Positions of these cells, each made as long as the longest."""
        edges = torch.tensor([self.edge(cell) for cell in range(cells.start, cells.stop + 1)])
        first, last = edges[:-1, None], edges[1:, None] - 1
        places = first + torch.arange(self.longest)  # (cell, longest)
        short = (places[:, -1:] > last).flatten().nonzero().flatten()
        if short.numel() == 0:
            return Padded(Positions(range(int(edges[0]), int(edges[-1]))), self.longest, None)
        return Padded(Positions.at(torch.minimum(places, last).flatten()), self.longest, short)


@dataclass(frozen=True)
class Padded:
    """Positions of cells of one length; cells numbered in ``short`` end with a copy."""

    places: Positions
    longest: int
    short: Tensor | None


def pooled(head: ExactHead, rows: Cells, columns: Cells, pool: Pool) -> Float[Tensor, "row column"]:
    """One head's cells."""
    row_parts, column_parts = -(-rows.longest // BLOCK_ROWS), -(-columns.longest // BLOCK_COLUMNS)
    # Cells larger than a block are cut into parts first; edges of parts fall on edges of cells.
    fine = _streamed(head, rows.cut(row_parts), columns.cut(column_parts), pool == "max")
    cells = fine.view(rows.count, row_parts, columns.count, column_parts)
    if pool == "max":
        return cells.amax(dim=(1, 3)).exp_()
    cells = cells.sum(dim=(1, 3))
    if pool == "mean":
        cells /= (rows.sizes()[:, None] * columns.sizes()).to(cells.device)
    return cells.to(head.dtype)


def _streamed(
    head: ExactHead, rows: Cells, columns: Cells, largest: bool
) -> Float[Tensor, "row column"]:
    """Block after block: logarithms of the largest weights (``largest``), or sums of weights."""
    empty, wide = (-torch.inf, head.dtype) if largest else (0.0, torch.float64)
    cells = torch.full((rows.count, columns.count), empty, dtype=wide, device=head.query.device)
    column_groups = [(group, columns.padded(group)) for group in columns.groups(BLOCK_COLUMNS)]

    def fill(row_group: range) -> None:
        run = Positions(range(rows.edge(row_group.start), rows.edge(row_group.stop)))
        padded_rows, reached = rows.padded(row_group), head.reach(run.run)
        for column_group, padded_columns in column_groups:
            if columns.touching(column_group, reached):
                block = _columns_pooled(head, run, padded_columns, largest)
                block = _rows_pooled(block, run, padded_rows, largest)
                part = slice(row_group.start, row_group.stop)
                cells[part, column_group.start : column_group.stop] = block

    # Later rows see more where it is causal: the longest work comes first.
    run_in_threads(fill, list(rows.groups(BLOCK_ROWS))[::-1], cells.device)
    return cells


def _columns_pooled(
    head: ExactHead, rows: Positions, columns: Padded, largest: bool
) -> Float[Tensor, "query column"]:
    """A block with its columns pooled."""
    if largest:
        scores = head.scores(rows, columns.places).view(len(rows), -1, columns.longest)
        return scores.amax(dim=2).sub_(head.logsums(rows)[:, None])
    weights = head.weights(rows, columns.places).view(len(rows), -1, columns.longest)
    if columns.short is not None:
        weights[:, :, -1].index_fill_(1, columns.short.to(weights.device), 0.0)
    return weights.sum(dim=2)


def _rows_pooled(
    block: Float[Tensor, "query column"], run: Positions, rows: Padded, largest: bool
) -> Float[Tensor, "row column"]:
    """The same block with its rows pooled, too."""
    if rows.places.index is not None:
        block = block.index_select(0, rows.places.index.to(block.device) - run.run.start)
    cells = block.view(-1, rows.longest, block.shape[1])
    if largest:
        return cells.amax(dim=1)
    if rows.short is not None:
        cells[:, -1].index_fill_(0, rows.short.to(block.device), 0.0)
    return cells.sum(dim=1, dtype=torch.float64)
