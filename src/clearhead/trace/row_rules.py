"""Masks and biases of recorded rows, kept as rules that are linear in tokens.

Models pass masks as (batch, head, query, key) tensors. Nearly all of them say no more than
"row i sees the keys from low to high, save padding", and nearly all biases depend on the key alone
(ALiBi) or on the distance alone (T5). Those few numbers are kept; only what fits neither stays as
it came. Everything here is plain tensors, so a trace can be saved and opened without the model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass(frozen=True)
class RowMask:
    """Row i of sequence b sees key j if low ≤ j < high and ``real``, or if it sees the ``whole``.

    ``dense`` replaces all of that where no such rule fits the mask.
    """

    low: Int[Tensor, "#batch query"]
    high: Int[Tensor, "#batch query"]  # exclusive
    real: Bool[Tensor, "#batch key"] | None = None  # False: padding within low … high
    whole: Bool[Tensor, "#batch query"] | None = None
    dense: Bool[Tensor, "#batch #head query key"] | None = None

    def block(
        self, batch: int, rows: range, columns: range
    ) -> Bool[Tensor, "head_or_1 rows columns"] | None:
        """Which cells of a block are visible; None if all of them are."""
        if self.dense is not None:
            return _of(self.dense, batch)[:, rows.start : rows.stop, columns.start : columns.stop]
        span = slice(rows.start, rows.stop)
        low, high = _of(self.low, batch)[span], _of(self.high, batch)[span]
        whole = None if self.whole is None else _of(self.whole, batch)[span]
        real = None
        if self.real is not None:
            real = _of(self.real, batch)[columns.start : columns.stop]
        if len(rows) == 0 or len(columns) == 0:
            return None
        inside = int(low.max()) <= columns.start and columns.stop <= int(high.min())
        if inside and (real is None or bool(real.all())):
            return None
        key = torch.arange(columns.start, columns.stop, device=low.device)
        seen = (key >= low[:, None]) & (key < high[:, None])
        if real is not None:
            seen &= real
        if whole is not None:
            seen |= whole[:, None]
        return seen[None]

    def take(self, batch: Int[Tensor, " taken"]) -> RowMask:
        """The rules of these sequences, in this order."""
        parts: dict[str, Any] = {
            name: _take(getattr(self, name), batch) for name in self.__dataclass_fields__
        }
        return RowMask(**parts)

    def first_rows(self, rows: int) -> RowMask:
        """The rules of the first rows."""
        return RowMask(
            low=self.low[:, :rows],
            high=self.high[:, :rows],
            real=self.real,
            whole=None if self.whole is None else self.whole[:, :rows],
            dense=None if self.dense is None else self.dense[:, :, :rows],
        )

    def heads(self, numbers: list[int]) -> RowMask:
        """Only these heads."""
        return replace(self, dense=_take_heads(self.dense, numbers))


@dataclass(frozen=True)
class RowBias:
    """What is added to the scaled, capped scores.

    Either ``numbers`` broadcastable to (batch, head, query, key), or ``diagonals``: one number for
    each distance, where row i and key j find theirs at index j − i + ``origin``. Rows flagged in
    ``without`` get none of it.
    """

    numbers: Float[Tensor, "#batch #head #query #key"] | None = None
    diagonals: Float[Tensor, "#batch #head distance"] | None = None
    origin: int = 0
    without: Bool[Tensor, "#batch query"] | None = None

    def block(
        self, batch: int, rows: range, columns: range
    ) -> Float[Tensor, "head_or_1 rows columns"]:
        """The bias of a block as one tensor."""
        part = self._all(batch, rows, columns)
        if self.without is None:
            return part
        return part.masked_fill(_of(self.without, batch)[rows.start : rows.stop, None], 0.0)

    def _all(self, batch: int, rows: range, columns: range) -> Tensor:
        if self.diagonals is not None:
            table = _of(self.diagonals, batch)
            row = torch.arange(rows.start, rows.stop, device=table.device)
            key = torch.arange(columns.start, columns.stop, device=table.device)
            places = (key - row[:, None] + self.origin).clamp(0, table.shape[-1] - 1)
            return table[:, places]
        assert self.numbers is not None
        part = _of(self.numbers, batch)
        part = part if part.shape[1] == 1 else part[:, rows.start : rows.stop]
        part = part if part.shape[2] == 1 else part[..., columns.start : columns.stop]
        return part.expand(-1, len(rows), len(columns))

    def take(self, batch: Int[Tensor, " taken"]) -> RowBias:
        """The biases of these sequences, in this order."""
        return replace(
            self,
            numbers=_take(self.numbers, batch),
            diagonals=_take(self.diagonals, batch),
            without=_take(self.without, batch),
        )

    def first_rows(self, rows: int) -> RowBias:
        """The biases of the first rows."""
        without = None if self.without is None else self.without[:, :rows]
        if self.numbers is None or self.numbers.shape[2] == 1:
            return replace(self, without=without)
        return replace(self, numbers=self.numbers[:, :, :rows], without=without)

    def heads(self, numbers: list[int]) -> RowBias:
        """Only these heads."""
        return replace(
            self,
            numbers=_take_heads(self.numbers, numbers),
            diagonals=_take_heads(self.diagonals, numbers),
        )


@dataclass(frozen=True)
class RowRules:
    """The rules of a run of rows, over the first ``keys`` keys; rows of the piece count from 0."""

    rows: int
    keys: int
    mask: RowMask | None = None  # None: all of these keys are visible
    bias: RowBias | None = None

    def take(self, batch: Int[Tensor, " taken"]) -> RowRules:
        """The rules of these sequences, in this order."""
        mask, bias = self.mask, self.bias
        return replace(
            self,
            mask=None if mask is None else mask.take(batch),
            bias=None if bias is None else bias.take(batch),
        )

    def first_rows(self, rows: int) -> RowRules:
        """The rules of the first rows."""
        return RowRules(
            rows,
            self.keys,
            None if self.mask is None else self.mask.first_rows(rows),
            None if self.bias is None else self.bias.first_rows(rows),
        )

    def heads(self, numbers: list[int]) -> RowRules:
        """Only these heads."""
        return replace(
            self,
            mask=None if self.mask is None else self.mask.heads(numbers),
            bias=None if self.bias is None else self.bias.heads(numbers),
        )


def _of(tensor: Tensor, batch: int) -> Tensor:
    return tensor[batch if tensor.shape[0] > 1 else 0]


def _take(tensor: Tensor | None, batch: Tensor) -> Tensor | None:
    return tensor if tensor is None or tensor.shape[0] == 1 else tensor[batch]


def _take_heads(tensor: Tensor | None, numbers: list[int]) -> Tensor | None:
    return tensor if tensor is None or tensor.shape[1] == 1 else tensor[:, numbers]


def filled_keys(piece: RowRules) -> int | None:
    """How many keys of a static cache are filled: behind them nobody sees anything."""
    if piece.mask is None or piece.keys <= piece.rows:
        return None
    mask = piece.mask
    if mask.dense is not None:
        columns = mask.dense.any(dim=2).any(dim=1).any(dim=0)
        last = int(columns.nonzero().max()) + 1 if bool(columns.any()) else piece.keys
    else:
        high = mask.high if mask.whole is None else mask.high.masked_fill(mask.whole, 0)
        last = int(high.max())
    return last if piece.rows <= last < piece.keys else None


def crop_keys(piece: RowRules, keys: int) -> RowRules:
    """The rules over the first keys alone."""
    mask, bias = piece.mask, piece.bias
    if mask is not None:
        mask = RowMask(
            mask.low.clamp(max=keys),
            mask.high.clamp(max=keys),
            None if mask.real is None else mask.real[:, :keys],
            mask.whole,
            None if mask.dense is None else mask.dense[..., :keys],
        )
    if bias is not None and bias.numbers is not None and bias.numbers.shape[3] != 1:
        bias = replace(bias, numbers=bias.numbers[..., :keys])
    return RowRules(piece.rows, keys, mask, bias)


def is_causal(piece: RowRules) -> bool:
    """True if no row sees a key after its own position, aligned to the end of the keys."""
    mask = piece.mask
    if piece.rows == 1 or mask is None:
        return piece.rows == 1
    standing = torch.arange(piece.rows, device=mask.low.device) + piece.keys - piece.rows
    if mask.dense is not None:
        key = torch.arange(piece.keys, device=mask.dense.device)
        return not bool((mask.dense & (key > standing[:, None])).any())
    return bool((mask.high <= standing + 1).all())
