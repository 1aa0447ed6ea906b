"""Passes through the data, each with its own end."""

from __future__ import annotations

import random

import torch

from clearhead.training.data.batches.passes import Passes, rectangle, shuffled


def test_items_of_all_passes_in_any_order() -> None:
    made = [[(turn, n) for n in range(2 + turn * 3 % 5)] for turn in range(9)]
    flat = [item for turn in made for item in turn]
    passes = Passes(lambda turn: made[turn])
    assert passes.first == 2
    numbers = list(range(len(flat)))
    random.Random(3).shuffle(numbers)
    assert [passes.item(number) for number in numbers] == [flat[number] for number in numbers]


def test_shuffled_and_rectangle() -> None:
    items = list("abcdefg")
    mixed = shuffled(items, torch.Generator().manual_seed(5))
    assert sorted(mixed) == items and mixed != items
    assert rectangle([[1], [2, 3, 5]], 9).tolist() == [[1, 9, 9], [2, 3, 5]]
