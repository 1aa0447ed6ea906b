"""Pooling of cells into larger ones. Numbers are never negative, so that negative ones are signs.

``MASKED``: no query of the cell sees a key of it. ``PENDING``: nothing of the cell is computed yet.
The largest of several numbers and signs is right for both: a number wins over ``PENDING``, which
wins over ``MASKED``.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from clearhead.trace.pooled_map import Pool

MASKED, PENDING = -1.0, -0.5


def pooled_cells(
    cells: Float[Tensor, "row column"], side: int, pool: Pool
) -> Float[Tensor, "row_cell column_cell"]:
    """Every ``side`` × ``side`` cells as one; for "mean" their sum: the mean comes at the end."""
    largest = largest_cells(cells, side, MASKED)
    if pool == "max" or side == 1:
        return largest
    return torch.where(largest < 0, largest, summed_cells(cells.clamp(min=0.0), side))


def largest_cells(
    numbers: Float[Tensor, "row column"], side: int, empty: float
) -> Float[Tensor, "row_cell column_cell"]:
    """The largest of every ``side`` × ``side`` numbers; rows first, as that is vectorised."""
    if side == 1:
        return numbers
    rows = _blocks(numbers, side, empty).amax(dim=1)
    return rows.view(len(rows), -1, side).amax(dim=2)


def summed_cells(
    numbers: Float[Tensor, "row column"], side: int
) -> Float[Tensor, "row_cell column_cell"]:
    """The sums of every ``side`` × ``side`` numbers."""
    rows = _blocks(numbers, side, 0.0).sum(dim=1)
    return rows.view(len(rows), -1, side).sum(dim=2)


def _blocks(numbers: Tensor, side: int, empty: float) -> Float[Tensor, "row_cell side column"]:
    """Runs of ``side`` rows; both axes are filled up where they do not divide."""
    rows, columns = (-size % side for size in numbers.shape)
    if rows or columns:
        numbers = functional.pad(numbers, (0, columns, 0, rows), value=empty)
    return numbers.reshape(-1, side, numbers.shape[1])


def divided(
    sums: Float[Tensor, "row column"], rows: range, columns: range, side: int
) -> Float[Tensor, "row column"]:
    """Means from sums: each cell by the number of its weights; signs stay."""
    down, across = (_sizes(run, side).to(sums) for run in (rows, columns))
    return torch.where(sums < 0, sums, sums / (down[:, None] * across))


def _sizes(run: range, side: int) -> Tensor:
    edges = [*range(run.start, run.stop, side), run.stop]
    return torch.tensor(edges).diff()
