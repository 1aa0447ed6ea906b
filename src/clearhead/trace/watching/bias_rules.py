"""Numbers that are added to scores, as rules: one for each key, one for each distance."""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.trace.row_rules import RowBias


def bias_rule(added: Tensor, known: Tensor | None, queries: int, keys: int) -> RowBias | None:
    """The rule behind numbers that are added to the scores: of the key, or of the distance."""
    if known is not None and known.shape == added.shape and torch.equal(added == 0, known):
        return None  # they hide, and do nothing else
    known = torch.ones_like(added, dtype=torch.bool) if known is None else known
    shape = torch.broadcast_shapes(added.shape, known.shape)  # type: ignore[no-untyped-call]
    added, known = added.expand(shape), known.expand(shape)
    shown = torch.where(known, added, 0.0)
    if not bool(shown.any()):
        return None
    shown = collapsed(collapsed(shown, 0), 1)
    if shown.shape[2] == 1 or shown.shape[3] == 1:
        return RowBias(shown.contiguous())
    column = torch.where(known, added, -torch.inf).amax(dim=2, keepdim=True)
    column = collapsed(collapsed(torch.where(column.isneginf(), 0.0, column), 0), 1)
    if bool(torch.where(known, added == column, True).all()):
        return RowBias(column)
    table = _diagonals(shown, queries, keys)
    if table is not None:
        return RowBias(diagonals=table, origin=queries - 1)
    return RowBias(shown.clone())


def _diagonals(numbers: Tensor, queries: int, keys: int) -> Tensor | None:
    """One number for each distance j − i from −(queries − 1) to keys − 1, if that is all."""
    below = numbers[:, :, :, 0].flip(-1)  # distances −(queries − 1) … 0
    table = torch.cat([below, numbers[:, :, 0, 1:]], dim=-1)
    for start in range(0, queries, 256):
        rows = torch.arange(start, min(start + 256, queries), device=numbers.device)[:, None]
        places = torch.arange(keys, device=numbers.device) - rows + queries - 1
        if not torch.equal(table[:, :, places], numbers[:, :, start : start + 256]):
            return None
    return table


def is_dense(bias: RowBias) -> bool:
    """True for numbers that follow no rule."""
    return bias.numbers is not None and 1 not in bias.numbers.shape[2:]


def collapsed(tensor: Tensor, axis: int) -> Tensor:
    """Without an axis along which everything is the same."""
    if tensor.shape[axis] == 1:
        return tensor
    first = tensor.narrow(axis, 0, 1)
    if tensor.stride(axis) == 0 or bool((tensor == first).all()):
        return first
    return tensor
