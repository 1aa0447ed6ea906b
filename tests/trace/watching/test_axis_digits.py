from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from clearhead.trace.watching.axis_digits import (
    Digit,
    arranged,
    heads_joined,
    is_whole,
    label_of,
    permuted,
    sizes_of,
    split_by,
    stack_joined,
    stacked,
    viewed,
)

START = label_of("znd", (6, 5, 7))


def test_an_axis_is_split_into_digits() -> None:
    split = viewed(START, (2, 3, 5, 7))
    assert split is not None and split[0] == (Digit("z", 2, 3),) and split[1] == (Digit("z", 3, 1),)
    assert viewed(START, (4, 3, 35, 1)) is None and sizes_of(split) == (2, 3, 5, 7)


def test_heads_joined_to_the_width() -> None:
    split = viewed(START, (2, 3, 5, 7))
    assert split is not None
    joined = viewed(permuted(split, (0, 2, 1, 3)), (2, 5, 21))
    assert joined is not None and heads_joined(joined) and not heads_joined(split)
    flat = viewed(START, (210,))
    assert flat is not None and not heads_joined(flat)


def test_a_whole_axis_comes_back_from_its_digits() -> None:
    split = viewed(START, (2, 3, 5, 7))
    assert split is not None
    again = viewed(split, (6, 5, 7))
    assert again is not None and is_whole(again[0], "z", 6) and not is_whole(split[0], "z", 6)


@given(st.permutations([0, 1, 2, 3]))
def test_arranging_undoes_any_permutation(order: list[int]) -> None:
    numbers = torch.arange(2 * 3 * 5 * 7).view(2, 3, 5, 7)
    split = viewed(START, (2, 3, 5, 7))
    assert split is not None
    moved = permuted(split, tuple(order))
    fine = split_by(moved, split)
    assert fine is not None
    back = arranged(numbers.permute(order), fine, split)
    assert back is not None and torch.equal(back, numbers)


def test_a_repeated_axis_stays_one() -> None:
    split = viewed(START, (2, 3, 5, 7))
    assert split is not None
    mask = torch.arange(2.0).view(2, 1, 1, 1)
    back = arranged(mask, split, split)
    assert back is not None and back.shape == (2, 1, 1, 1)


def test_what_is_stacked_is_a_head_once_it_joins_the_width() -> None:
    label = stacked(label_of("znd", (2, 5, 7)), 1, 3)
    assert sizes_of(label) == (2, 3, 5, 7) and not stack_joined(label)
    rows_first = viewed(permuted(label, (0, 2, 1, 3)), (2, 5, 21))
    assert rows_first is not None and stack_joined(rows_first)
    with_rows = viewed(label, (2, 15, 7))
    assert with_rows is not None and not stack_joined(with_rows)
