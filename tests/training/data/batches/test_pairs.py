"""Batches of pairs: by length, by tokens, every pair once in each pass."""

from __future__ import annotations

import random

import pytest

from clearhead.errors import InputError
from clearhead.training.data.batches import pairs as pair_batches
from clearhead.training.data.batches.batch import IGNORED, PairBatch
from clearhead.training.data.batches.pairs import Pair, PairBatches, padded, pairs_in_order


def some_pairs(count: int) -> list[Pair]:
    generator = random.Random(7)
    lengths = [generator.randint(3, 29) for _ in range(count)]
    return [
        ([n + 10] * length, [n + 10] * max(1, length + generator.randint(-2, 2)))
        for n, length in enumerate(lengths)
    ]


def test_rectangles_by_hand() -> None:
    batch = padded([([5, 6, 7], [8, 2]), ([9], [4, 3, 2])], start=1, pad=0)
    assert batch.source.tolist() == [[5, 6, 7], [9, 0, 0]]
    assert batch.source_counts.tolist() == [3, 1]
    assert batch.ids.tolist() == [[1, 8, 0], [1, 4, 3]]
    assert batch.targets.tolist() == [[8, 2, IGNORED], [4, 3, 2]]
    assert batch.tokens == 5


def size_of(batch: PairBatch) -> int:
    return batch.source.numel() + batch.ids.numel()


def test_each_pair_once_in_a_pass_and_little_padding() -> None:
    pairs = some_pairs(503)
    batches = PairBatches(pairs, batch_tokens=311, start=1, pad=0, seed=5)
    held = [batches.batch(n) for n in range(batches.batches_per_pass)]
    names = [int(row[0]) for batch in held for row in batch.source]
    assert sorted(names) == [n + 10 for n in range(503)]
    assert max(map(size_of, held)) <= 311
    real = sum(len(source) + len(target) for source, target in pairs)
    assert real / sum(map(size_of, held)) > 0.85
    lengths = [batch.source.shape[1] for batch in held]
    assert lengths != sorted(lengths)  # batches are shuffled
    again = PairBatches(pairs, batch_tokens=311, start=1, pad=0, seed=5)
    assert again.batch(9).source.tolist() == held[9].source.tolist()


def test_each_pair_once_in_every_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many batches a pass has: they differ from pass to pass."""
    monkeypatch.setattr(pair_batches, "SORTED_TOGETHER", 4)
    batches = PairBatches(some_pairs(150), batch_tokens=150, start=1, pad=0, seed=5)
    numbers = iter(range(10_000))
    counts = set()
    for _ in range(12):
        names: list[int] = []
        count = 0
        while len(names) < 150:
            names += [int(row[0]) for row in batches.batch(next(numbers)).source]
            count += 1
        assert sorted(names) == [n + 10 for n in range(150)]
        counts.add(count)
    assert len(counts) > 1  # else this test would show nothing
    late = next(numbers) - 1
    again = PairBatches(some_pairs(150), batch_tokens=150, start=1, pad=0, seed=5)
    assert again.batch(late).source.tolist() == batches.batch(late).source.tolist()
    assert again.batch(3).source.tolist() == batches.batch(3).source.tolist()


def test_shares_and_parts_lose_nothing() -> None:
    batch = padded(some_pairs(13), start=1, pad=0)
    shares = [batch.share(rank, 3) for rank in range(3)]
    assert sum(share.tokens for share in shares) == batch.tokens
    assert [share.rows for share in shares] == [5, 4, 4]
    assert sum(part.tokens for part in batch.parts(4)) == batch.tokens
    spare = padded(some_pairs(2), start=1, pad=0).share(2, 3)
    assert (spare.rows, spare.tokens) == (1, 0)


def test_refusals() -> None:
    with pytest.raises(InputError, match="no pairs"):
        PairBatches([], batch_tokens=10, start=1, pad=0, seed=0)
    with pytest.raises(InputError, match="the longest pair has 12 tokens, and a batch holds 11"):
        PairBatches([([3] * 7, [3] * 5)], batch_tokens=11, start=1, pad=0, seed=0)


def test_in_order_takes_everything() -> None:
    batches = pairs_in_order(some_pairs(37), batch_tokens=100, start=1, pad=0)
    assert sum(batch.rows for batch in batches) == 37
