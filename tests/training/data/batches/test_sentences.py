"""Batches of pairs of sentences."""

from __future__ import annotations

import random

import pytest

from clearhead.errors import InputError
from clearhead.training.data.batches.sentences import (
    SentenceBatches,
    in_batches,
    sentences,
    sentences_in_order,
)


def pairs(count: int) -> list[tuple[list[int], list[int]]]:
    generator = random.Random(5)
    return [([n + 1] * generator.randint(1, 7), [n + 1] * generator.randint(1, 5))
            for n in range(count)]  # fmt: skip


@pytest.mark.parametrize("count", [2, 3, 17, 29])
@pytest.mark.parametrize("tokens", [1, 40, 10_000])
def test_every_pair_once_and_never_alone(count: int, tokens: int) -> None:
    batches = SentenceBatches(pairs(count), batch_tokens=tokens, pad=0, seed=3)
    for given in ([batches.batch(n) for n in range(batches.batches_per_pass)],
                  sentences_in_order(pairs(count), batch_tokens=tokens, pad=0)):  # fmt: skip
        assert sorted(int(b.ids[row, 0]) for b in given for row in range(b.rows)) == list(
            range(1, count + 1)
        )
        assert all(batch.rows >= 2 and batch.tokens == batch.rows for batch in given)
        assert all(batch.parts(5) == [batch] or batch.parts(5)[0] is batch for batch in given)


def test_rectangles() -> None:
    batch = sentences([([3, 5], [7]), ([11], [13, 17, 19])], 0)
    assert batch.ids.tolist() == [[3, 5], [11, 0]]
    assert batch.second.tolist() == [[7, 0, 0], [13, 17, 19]]
    assert batch.counts.tolist() == [2, 1] and batch.second_counts.tolist() == [1, 3]


def test_one_pair_is_too_few() -> None:
    with pytest.raises(InputError, match="at least two are needed"):
        in_batches(pairs(1), 50)
