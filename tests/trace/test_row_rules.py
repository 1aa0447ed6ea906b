from __future__ import annotations

import torch

from clearhead.trace.row_rules import (
    RowBias,
    RowMask,
    RowRules,
    crop_keys,
    filled_keys,
    is_causal,
)

ROWS, KEYS = 5, 7
LOW = torch.tensor([[0, 1, 2, 0, 3], [0, 0, 1, 2, 2]])
HIGH = torch.tensor([[3, 4, 5, 0, 7], [2, 3, 4, 6, 7]])
REAL = torch.tensor([[True] * 7, [False, True, True, False, True, True, True]])
WHOLE = torch.tensor([[False] * 5, [False, False, True, False, False]])


def cell(batch: int, row: int, key: int) -> bool:
    inside = bool(LOW[batch, row] <= key < HIGH[batch, row]) and bool(REAL[batch, key])
    return inside or bool(WHOLE[batch, row])


def test_every_cell_of_a_mask_by_its_rule() -> None:
    mask = RowMask(LOW, HIGH, REAL, WHOLE)
    for batch in range(2):
        for rows, columns in ((range(5), range(7)), (range(1, 4), range(2, 6))):
            seen = mask.block(batch, rows, columns)
            wanted = [[cell(batch, row, key) for key in columns] for row in rows]
            assert seen is not None and seen[0].tolist() == wanted


def test_a_block_that_is_seen_wholly_is_none() -> None:
    assert RowMask(LOW, HIGH).block(0, range(3), range(2, 3)) is None
    assert RowMask(LOW, HIGH).block(0, range(2, 2), range(7)) is None


def test_dense_masks_are_cut_out() -> None:
    dense = torch.rand(1, 3, ROWS, KEYS, generator=torch.Generator().manual_seed(0)) > 0.5
    mask = RowMask(LOW, HIGH, dense=dense)
    seen = mask.block(1, range(1, 3), range(4, 7))
    assert seen is not None and torch.equal(seen, dense[0, :, 1:3, 4:7])
    one = mask.heads([2]).block(0, range(5), range(7))
    assert one is not None and torch.equal(one, dense[0, 2:])


def test_biases_by_key_and_by_distance() -> None:
    of_key = torch.arange(14.0).view(1, 2, 1, 7)
    assert RowBias(of_key).block(0, range(2), range(3, 5))[1].tolist() == [[10, 11], [10, 11]]
    table = torch.arange(11.0).view(1, 1, 11)  # index j − i + 4
    bias = RowBias(diagonals=table, origin=4)
    assert bias.block(0, range(1, 3), range(2, 5))[0].tolist() == [[5, 6, 7], [4, 5, 6]]
    without = RowBias(of_key, without=torch.tensor([[True, False]]))
    assert without.block(0, range(2), range(2))[1].tolist() == [[0, 0], [7, 8]]


def test_taking_sequences_and_rows() -> None:
    rules = RowRules(ROWS, KEYS, RowMask(LOW, HIGH, REAL, WHOLE), RowBias(torch.ones(1, 1, 5, 7)))
    swapped = rules.take(torch.tensor([1, 0])).first_rows(3)
    assert swapped.rows == 3 and swapped.bias is not None and swapped.bias.numbers is not None
    assert swapped.bias.numbers.shape == (1, 1, 3, 7)
    assert swapped.mask is not None and swapped.mask.whole is not None
    assert swapped.mask.low.tolist() == [[0, 0, 1], [0, 1, 2]]
    assert swapped.mask.whole.tolist() == [[False, False, True], [False] * 3]


def test_the_filled_part_of_a_static_cache() -> None:
    rules = RowRules(2, 7, RowMask(torch.tensor([[0, 0]]), torch.tensor([[3, 4]])))
    assert filled_keys(rules) == 4
    dense = torch.zeros(1, 1, 2, 7, dtype=torch.bool)
    dense[..., 1, 4] = True
    assert filled_keys(RowRules(2, 7, RowMask(rules.mask.low, rules.mask.high, dense=dense))) == 5  # type: ignore[union-attr]
    assert filled_keys(RowRules(2, 7)) is None
    cropped = crop_keys(rules, 3)
    assert cropped.keys == 3 and cropped.mask is not None
    assert cropped.mask.high.tolist() == [[3, 3]]


def test_causal_is_aligned_to_the_last_key() -> None:
    low = torch.zeros(1, 3, dtype=torch.long)
    assert is_causal(RowRules(3, 5, RowMask(low, torch.tensor([[3, 4, 5]]))))
    assert not is_causal(RowRules(3, 5, RowMask(low, torch.tensor([[4, 4, 5]]))))
    assert is_causal(RowRules(1, 5)) and not is_causal(RowRules(3, 5))
    dense = torch.ones(1, 1, 3, 5, dtype=torch.bool).tril(2)
    assert is_causal(RowRules(3, 5, RowMask(low, low, dense=dense)))
    assert not is_causal(RowRules(3, 5, RowMask(low, low, dense=torch.ones_like(dense))))
