"""Joining the rules of consecutive runs of rows: a generated text has one run for each step."""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.trace.row_rules import RowBias, RowMask, RowRules


def joined_rules(pieces: list[RowRules]) -> list[RowRules]:
    """The same rules with as few pieces as possible."""
    kept = pieces[:1]
    for piece in pieces[1:]:
        both = joined(kept[-1], piece)
        if both is None:
            kept.append(piece)
        else:
            kept[-1] = both
    return kept


def joined(first: RowRules, second: RowRules) -> RowRules | None:
    """Two pieces as one, if one rule can express both; otherwise None."""
    if first.keys > second.keys:
        return None
    bias = _joined_bias(first, second)
    if bias is None and (first.bias is not None or second.bias is not None):
        return None
    if first.mask is None and second.mask is None and first.keys == second.keys:
        return RowRules(first.rows + second.rows, second.keys, None, bias)
    device = _device(first) or _device(second)
    one, two = _explicit_mask(first, device), _explicit_mask(second, device)
    if one.dense is not None or two.dense is not None:
        return None
    fits, real = _joined_real(one, two, first.keys, second.keys)
    if not fits:
        return None
    low, high = _beside(one.low, two.low), _beside(one.high, two.high)
    whole = None
    if one.whole is not None or two.whole is not None:
        if first.keys != second.keys and one.whole is not None and bool(one.whole.any()):
            return None  # "everything" was less then than it is now
        whole = _beside(_flags(one), _flags(two))
    mask = RowMask(low, high, real, whole)
    return RowRules(first.rows + second.rows, second.keys, mask, bias)


def _device(piece: RowRules) -> torch.device | None:
    return None if piece.mask is None else piece.mask.low.device


def _explicit_mask(piece: RowRules, device: torch.device | None) -> RowMask:
    """A piece that sees all its keys, as from 0 to their number."""
    if piece.mask is not None:
        return piece.mask
    low = torch.zeros(1, piece.rows, dtype=torch.long, device=device)
    return RowMask(low, torch.full_like(low, piece.keys))


def _flags(mask: RowMask) -> Tensor:
    return torch.zeros_like(mask.low, dtype=torch.bool) if mask.whole is None else mask.whole


def _beside(one: Tensor, two: Tensor) -> Tensor:
    batch = max(one.shape[0], two.shape[0])
    return torch.cat([one.expand(batch, -1), two.expand(batch, -1)], dim=1)


def _joined_real(one: RowMask, two: RowMask, before: int, now: int) -> tuple[bool, Tensor | None]:
    """Padding of both; it does not fit where one sees within its reach what the other does not."""
    if one.real is None and two.real is None:
        return True, None
    both = []
    for mask, keys in ((one, before), (two, now)):
        real = mask.real if mask.real is not None else mask.low.new_ones(1, keys).bool()
        both.append(torch.nn.functional.pad(real, (0, now - keys), value=True))
    real = both[0] & both[1]
    for mask, own in zip((one, two), both, strict=True):
        key = torch.arange(now, device=own.device)
        within = (key >= mask.low.amin(1, keepdim=True)) & (key < mask.high.amax(1, keepdim=True))
        if bool((within & (own != real)).any()):
            return False, None
    return True, real


def _joined_bias(first: RowRules, second: RowRules) -> RowBias | None:
    """One bias for both, if the later one goes on where the earlier one ended."""
    one, two = first.bias, second.bias
    if one is None or two is None or two.numbers is None:
        return None
    if one.without is not None or two.without is not None:
        return None
    if one.diagonals is not None:
        return _longer_diagonals(one, two.numbers, first, second)
    assert one.numbers is not None
    if one.numbers.shape[2] != 1 or two.numbers.shape[2] != 1:
        return None
    if one.numbers.shape[3] not in (1, first.keys) or two.numbers.shape[3] != second.keys:
        return None
    if one.numbers.shape[:2] != two.numbers.shape[:2]:
        return None
    if torch.equal(one.numbers, two.numbers[..., : first.keys]):
        return two
    if first.rows == 1 and second.rows == 1 and first.keys + 1 == second.keys:
        return _diagonals_of_two(one.numbers, two.numbers, first.keys)
    return None


def _diagonals_of_two(one: Tensor, two: Tensor, keys: int) -> RowBias | None:
    """Two single rows, the later one a key further on, that depend on the distance alone."""
    if one.shape[3] != keys or not torch.equal(one[:, :, 0], two[:, :, 0, 1:]):
        return None
    # Row 1 and key j stand at distance j − 1, found at index j of the later row's numbers.
    return RowBias(diagonals=two[:, :, 0], origin=1)


def _longer_diagonals(
    one: RowBias, row: Tensor, first: RowRules, second: RowRules
) -> RowBias | None:
    """Diagonals with one more row below: its last number but one is the distance −1, and so on."""
    table = one.diagonals
    if table is None or second.rows != 1 or row.shape[3] != second.keys:
        return None
    if table.shape[:2] != row.shape[:2]:
        return None
    # Row r (counted from the first) and key j use index j − r + origin. The new row is r = rows.
    start = -first.rows + one.origin  # the index of its first key; negative: beyond the table
    known = range(max(start, 0), min(start + second.keys, table.shape[-1]))
    new = row[:, :, 0]
    if len(known) == 0 or start + second.keys > table.shape[-1]:
        return None
    if not torch.equal(table[..., known.start : known.stop], new[..., known.start - start :]):
        return None
    if start >= 0:
        return one
    return RowBias(
        diagonals=torch.cat([new[..., :-start], table], dim=-1), origin=one.origin - start
    )
