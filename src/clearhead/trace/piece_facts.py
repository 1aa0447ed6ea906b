"""What the rules of a piece tell about it: causal or not, and how many keys are filled."""

from __future__ import annotations

from dataclasses import replace

import torch

from clearhead.trace.row_rules import Piece, RowMask


def filled_keys(piece: Piece) -> int | None:
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


def cut(piece: Piece, keys: int) -> Piece:
    """The rules over the first keys alone."""
    mask, bias = piece.mask, piece.bias
    assert mask is not None
    mask = RowMask(
        mask.low.clamp(max=keys),
        mask.high.clamp(max=keys),
        None if mask.real is None else mask.real[:, :keys],
        mask.whole,
        None if mask.dense is None else mask.dense[..., :keys],
    )
    if bias is not None and bias.numbers is not None and bias.numbers.shape[3] != 1:
        bias = replace(bias, numbers=bias.numbers[..., :keys])
    return Piece(piece.rows, keys, mask, bias)


def is_causal(piece: Piece) -> bool:
    """Whether no row sees a key beyond the one at which it stands, aligned to the end."""
    mask = piece.mask
    if piece.rows == 1 or mask is None:
        return piece.rows == 1
    standing = torch.arange(piece.rows, device=mask.low.device) + piece.keys - piece.rows
    if mask.dense is not None:
        key = torch.arange(piece.keys, device=mask.dense.device)
        return not bool((mask.dense & (key > standing[:, None])).any())
    return bool((mask.high <= standing + 1).all())
