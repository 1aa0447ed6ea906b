"""The strongest weights of each row, in the units of a page: the file stays linear in tokens.

Of each row at most :data:`MOST` weights are kept, and of these such as round to at least ``cut``
units. What is left out is added up for each row, so a page can say how much of a row it lacks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Float32, Int, Int64, Shaped, UInt16, UInt32
from torch import Tensor

from clearhead.explain.pictures import DECIMALS, shown_numbers

MOST = 64  # weights of a row
UNITS = 10**DECIMALS  # a weight of 1


@dataclass(frozen=True)
class Strongest:
    """Rows of weights, the strongest of each in the order of their columns; 0 units: none."""

    columns: UInt16[np.ndarray, "row place"]
    units: UInt32[np.ndarray, "row place"]
    heads: UInt16[np.ndarray, "row place"] | None  # the head of each weight, where heads are pooled
    hidden: UInt16[np.ndarray, " row"]  # the sum of the weights on hidden columns
    totals: Float[np.ndarray, " row"]  # of all weights, kept or not
    present: Int64[np.ndarray, " row"]  # weights of at least one unit, kept or not
    exact: Float32[np.ndarray, "row place"] | None = None  # sums over heads, not rounded

    @property
    def entries(self) -> int:
        """How many weights there are."""
        return int((self.units > 0).sum())

    def cut(self, units: int) -> Strongest:
        """Only weights of at least so many units."""
        kept = np.where(self.units >= units, self.units, 0).astype(np.uint32)
        return replace(self, units=kept)

    def head(self, number: int, heads: int) -> Strongest:
        """The rows of one of several heads that stand one below the other."""
        count = len(self.hidden) // heads
        part = slice(number * count, (number + 1) * count)
        return Strongest(
            self.columns[part], self.units[part], None, self.hidden[part], self.totals[part],
            self.present[part],
        )  # fmt: skip

    @property
    def kept(self) -> Bool[np.ndarray, "row place"]:
        """True where a place holds a weight."""
        return np.asarray(self.units > 0)

    @property
    def incomplete(self) -> Bool[np.ndarray, " row"]:
        """True for rows of which weights are left out that would not be shown as 0.0000."""
        return np.asarray(self.present > self.kept.sum(axis=1))

    @property
    def left_out(self) -> Float[np.ndarray, " row"]:
        """The sum of each row's weights that are not kept; 0 where only rounding is missing."""
        sums = self.units.sum(axis=1, dtype=np.int64)
        rounding = (0.5 / UNITS) * np.maximum(self.kept.sum(axis=1), 1)
        missing = self.totals - sums / UNITS
        return np.asarray(np.where(missing > rounding, missing, 0.0), dtype=np.float64)


def strongest(
    weights: Float[Tensor, "row key"],
    hidden: tuple[int, ...],
    heads: Int[Tensor, "row key"] | None = None,
    *,
    exact: bool = False,
    most: int = MOST,
) -> Strongest:
    """The strongest weights of each row; ``exact`` keeps them unrounded as well."""
    count = min(most, weights.shape[1])
    values, columns = weights.topk(count, dim=1, sorted=False)
    columns, order = columns.sort(dim=1)
    values = values.gather(1, order)
    masses = weights[:, list(hidden)].sum(dim=1)
    return Strongest(
        columns=columns.numpy().astype(np.uint16),
        units=in_units(values),
        heads=None if heads is None else heads.gather(1, columns).numpy().astype(np.uint16),
        hidden=in_units(masses).clip(max=65535).astype(np.uint16),
        totals=weights.sum(dim=1).double().numpy(),
        present=(weights > 0.5 / UNITS).sum(dim=1).numpy(),
        exact=values.float().numpy() if exact else None,
    )


def in_units(numbers: Float[Tensor, "*shape"]) -> UInt32[np.ndarray, "*shape"]:
    """Numbers as they are shown, in units: ``shown_numbers`` without its division."""
    rounded = shown_numbers(numbers.numpy()) * UNITS
    return np.asarray(np.clip(np.rint(rounded), 0, 2**32 - 1), dtype=np.uint32)


def joined(parts: list[Strongest]) -> Strongest:
    """Runs of rows, one below the other; short rows are filled up with nothing."""
    heads = [part.heads for part in parts if part.heads is not None]
    exact = [part.exact for part in parts if part.exact is not None]
    return Strongest(
        _stacked([part.columns for part in parts]),
        _stacked([part.units for part in parts]),
        _stacked(heads) if len(heads) == len(parts) else None,
        np.concatenate([part.hidden for part in parts]),
        np.concatenate([part.totals for part in parts]),
        np.concatenate([part.present for part in parts]),
        _stacked(exact) if len(exact) == len(parts) else None,
    )


def _stacked(parts: list[Shaped[np.ndarray, "_ _"]]) -> Shaped[np.ndarray, "row place"]:
    wide = max(part.shape[1] for part in parts)
    return np.concatenate([np.pad(one, ((0, 0), (0, wide - one.shape[1]))) for one in parts])


def by_head(runs: list[Strongest], heads: int) -> Strongest:
    """Runs of rows of several heads each, put in order: all rows of a head, then the next's."""
    if len(runs) == 1:
        return runs[0]
    return joined([run.head(number, heads) for number in range(heads) for run in runs])


def fitting_cut(rows: list[Strongest], most: int) -> int:
    """The smallest cut, in units, that leaves at most so many weights in all."""
    counts = np.zeros(65536, dtype=np.int64)
    for part in rows:
        counts += np.bincount(part.units.clip(max=65535).ravel(), minlength=65536)
    at_least = counts[::-1].cumsum()[::-1]  # [u]: weights of u units and more
    fits = np.flatnonzero(at_least[1:] <= most)
    return int(fits[0]) + 1 if len(fits) else 65535
