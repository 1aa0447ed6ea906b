"""Packed documents: every token learned once in each pass, and nobody looks across a border."""

from __future__ import annotations

import pytest
import torch

from clearhead.errors import InputError
from clearhead.training.data.batch import IGNORED
from clearhead.training.data.packed_batches import PackedBatches, cut, in_order, joined

DOCUMENTS = [[10, 11, 12, 13, 14], [20, 21, 22], [30, 31, 32, 33, 34, 35, 36]]


def test_rows_by_hand() -> None:
    stream, owners = joined([torch.tensor(ids) for ids in DOCUMENTS])
    batch = cut(stream, owners, torch.tensor([3, 8]), 4)
    assert batch.ids.tolist() == [[13, 14, 20, 21], [30, 31, 32, 33]]
    assert batch.targets.tolist() == [[14, IGNORED, 21, 22], [31, 32, 33, 34]]
    assert batch.documents is not None and batch.positions is not None
    assert batch.documents.tolist() == [[0, 0, 1, 1], [2, 2, 2, 2]]
    assert batch.positions.tolist() == [[0, 1, 0, 1], [0, 1, 2, 3]]
    assert batch.tokens == 7


def test_rows_within_one_document_need_no_borders() -> None:
    batch = PackedBatches([list(range(100))], context=7, batch_tokens=21, seed=3).batch(5)
    assert batch.documents is None
    assert torch.equal(batch.targets, batch.ids + 1)


def test_in_order_predicts_everything_once() -> None:
    batches = in_order(DOCUMENTS, context=4, batch_tokens=8)
    seen = [t for batch in batches for t in batch.targets.flatten().tolist() if t != IGNORED]
    assert sorted(seen) == [11, 12, 13, 14, 21, 22, 31, 32, 33, 34, 35, 36]


def test_a_pass_shows_each_token_at_most_once_and_the_next_another_order() -> None:
    documents = [list(range(n * 100, n * 100 + 17 + n)) for n in range(1, 12)]
    batches = PackedBatches(documents, context=5, batch_tokens=23, seed=3)
    turns = []
    for turn in range(2):
        numbers = range(turn * batches.batches_per_pass, (turn + 1) * batches.batches_per_pass)
        rows = [row for n in numbers for row in batches.batch(n).ids.tolist()]
        ids = [id for row in rows for id in row]
        assert len(set(ids)) == len(ids) > 0.8 * batches.total
        turns.append(rows)
    assert turns[0] != turns[1]


def test_a_batch_follows_from_its_number() -> None:
    def batch(seed: int, number: int) -> list[list[int]]:
        made = PackedBatches([list(range(300))], context=7, batch_tokens=29, seed=seed)
        return made.batch(number).ids.tolist()

    assert batch(3, 40) == batch(3, 40)
    assert batch(3, 40) != batch(4, 40)
    made = PackedBatches([list(range(300))], context=7, batch_tokens=29, seed=3)
    made.batch(2)
    assert made.batch(40).ids.tolist() == batch(3, 40)  # whatever was asked for before


def test_too_little_text() -> None:
    with pytest.raises(InputError, match="3 tokens, too few for one row of 5"):
        PackedBatches([[1, 2, 3]], context=5, batch_tokens=10, seed=0)
    with pytest.raises(InputError, match="every document is empty"):
        in_order([[]], context=5, batch_tokens=10)
