"""Masking: 15 % of a row's tokens; 80 % masked, 10 % random, 10 % as they are."""

from __future__ import annotations

import pytest
import torch

from clearhead.errors import InputError
from clearhead.text.characters import CharacterTokenizer
from clearhead.training.data.batches.batch import IGNORED
from clearhead.training.data.batches.masked import (
    MaskedBatches,
    Masking,
    cut_up,
    masked_in_order,
)

MASK, PAD, CLS, SEP = 4, 0, 2, 3
MASKING = Masking(MASK, PAD, (CLS,), (SEP,), torch.arange(10, 1000))


def documents() -> list[list[int]]:
    generator = torch.Generator().manual_seed(5)
    return [torch.randint(10, 1000, (size,), generator=generator).tolist()
            for size in (701, 5, 300, 1, 997)]  # fmt: skip


def test_shares() -> None:
    batches = MaskedBatches(documents(), MASKING, row=101, batch_tokens=505, seed=3)
    counts = {"tokens": 0, "targets": 0, "masked": 0, "same": 0}
    for number in range(60):
        batch = batches.batch(number)
        real = torch.arange(batch.ids.shape[1]) < batch.counts[:, None]
        assert bool((batch.ids[:, 0] == CLS).all()) and bool((batch.ids[~real] == PAD).all())
        ends = batch.ids.gather(1, batch.counts[:, None] - 1)
        assert bool((ends == SEP).all())
        chosen = batch.targets != IGNORED
        assert not bool((chosen & ~real).any()) and bool(chosen.any(dim=1).all())
        assert not bool(torch.isin(batch.targets[chosen], torch.tensor([CLS, SEP, PAD])).any())
        counts["tokens"] += int(batch.counts.sum()) - 2 * batch.rows
        counts["targets"] += int(chosen.sum())
        counts["masked"] += int((batch.ids[chosen] == MASK).sum())
        counts["same"] += int((batch.ids[chosen] == batch.targets[chosen]).sum())
    assert counts["targets"] / counts["tokens"] == pytest.approx(0.15, abs=0.005)
    assert counts["masked"] / counts["targets"] == pytest.approx(0.8, abs=0.03)
    assert counts["same"] / counts["targets"] == pytest.approx(0.1, abs=0.03)


def test_every_token_stands_once_in_a_pass_and_batches_follow_from_the_seed() -> None:
    given = {"row": 53, "batch_tokens": 212, "seed": 7}
    batches, again = (MaskedBatches(documents(), MASKING, **given) for _ in range(2))
    seen: list[int] = []
    for number in range(batches.batches_per_pass):
        batch = batches.batch(number)
        whole = torch.where(batch.targets == IGNORED, batch.ids, batch.targets)
        seen += [id for id in whole.flatten().tolist() if id >= 10]
    assert sorted(seen) == sorted(id for ids in documents() for id in ids)
    later = batches.batches_per_pass + 3
    assert torch.equal(batches.batch(later).ids, again.batch(later).ids)
    one, two = (masked_in_order(documents(), MASKING, **given) for _ in range(2))
    assert all(torch.equal(a.ids, b.ids) for a, b in zip(one, two, strict=True))


def test_cutting_up() -> None:
    assert cut_up([1, 2, 3, 4, 5], 2) == [[1, 2], [3, 4], [5]]
    assert cut_up([1, 2], 5, shift=3) == [[1, 2]]
    with pytest.raises(InputError, match="holds no text"):
        masked_in_order([[11]], MASKING, row=2, batch_tokens=5, seed=0)
    with pytest.raises(InputError, match="every document is empty"):
        MaskedBatches([[]], MASKING, row=5, batch_tokens=5, seed=0)


def test_a_vocabulary_without_a_mask() -> None:
    with pytest.raises(InputError, match="has no mask token"):
        Masking.of(CharacterTokenizer("abc"), 7)
