"""Packed documents: every token learned once in each pass, and nobody looks across a border."""

from __future__ import annotations

import random

import pytest
import torch

from clearhead.errors import InputError
from clearhead.training.data.batches.batch import IGNORED
from clearhead.training.data.batches.packed import PackedBatches, Stream, batch_of, in_order
from clearhead.training.data.tokens.file import TokenFile
from clearhead.training.random_seed import generator_for

DOCUMENTS = [[10, 11, 12, 13, 14], [20, 21, 22], [30, 31, 32, 33, 34, 35, 36]]


def test_rows_by_hand() -> None:
    places = torch.tensor([[3], [8]]) + torch.arange(5)
    batch = batch_of(*Stream(TokenFile.of(DOCUMENTS)).at(places))
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


def predicted(batches: PackedBatches, passes: int) -> list[int]:
    """The targets of the first passes, row by row as the batches give them."""
    rows = passes * batches._rows_per_pass
    targets: list[list[int]] = []
    number = 0
    while len(targets) < rows:
        targets += batches.batch(number).targets.tolist()
        number += 1
    return [target for row in targets[:rows] for target in row if target != IGNORED]


@pytest.mark.parametrize(
    "lengths", [(17,), (6,), (1, 5), (3, 1, 1, 9), tuple(range(1, 23)), (100,)]
)
@pytest.mark.parametrize("batch_tokens", [1, 11, 23, 10_000])
def test_every_token_is_predicted_once_in_each_pass(
    lengths: tuple[int, ...], batch_tokens: int
) -> None:
    documents = [[1000 * n + i for i in range(length)] for n, length in enumerate(lengths)]
    inner = sorted(id for ids in documents for id in ids[1:])
    for seed in range(5):
        batches = PackedBatches(documents, context=5, batch_tokens=batch_tokens, seed=seed)
        for passes in (1, 2, 3):
            assert sorted(predicted(batches, passes)) == sorted(inner * passes)


def test_a_target_follows_its_token_and_passes_differ() -> None:
    documents = [list(range(n * 100, n * 100 + 17 + n)) for n in range(1, 12)]
    batches = PackedBatches(documents, context=5, batch_tokens=23, seed=3)
    for number in range(3 * batches.batches_per_pass):
        batch = batches.batch(number)
        known = batch.targets != IGNORED
        assert torch.equal(batch.targets[known], batch.ids[known] + 1)
        assert batch.rows == 4  # every batch is whole, whatever the number of rows of a pass
    once = predicted(batches, 1)
    assert predicted(batches, 2)[len(once) :] != once


def test_where_a_row_is_cut_changes_from_pass_to_pass() -> None:
    """Else the tokens just behind a cut would never have anything before them."""
    batches = PackedBatches([list(range(50))], context=5, batch_tokens=10_000, seed=0)
    firsts = {batches.batch(n).ids.min().item() for n in range(20)}
    starts = {int(row[0]) % 5 for n in range(20) for row in batches.batch(n).ids}
    assert starts == {0, 1, 2, 3, 4} and firsts == {0}


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
    assert len(in_order([[]], context=5, batch_tokens=10)) == 0  # nothing to validate on


@pytest.mark.parametrize("seed", range(20))
def test_the_same_batches_as_with_all_tokens_in_one_tensor(seed: int) -> None:
    """An independent ring: the shuffled documents are copied into one stream."""
    draw = random.Random(seed)
    documents = [[draw.randrange(97) for _ in range(draw.choice((1, 2, 3, 7, 53)))]
                 for _ in range(draw.choice((1, 2, 5, 31)))]  # fmt: skip
    total = sum(map(len, documents))
    context = draw.randrange(1, max(2, min(total - 1, 41)))
    if total <= context:
        return
    batches = PackedBatches(documents, context=context, batch_tokens=3 * context, seed=seed)
    generator = generator_for("packed batches", seed, 0)
    order = torch.randperm(len(documents), generator=generator).tolist()
    shift = int(torch.randint(context, (1,), generator=generator))
    rows = torch.randperm(-(-total // context), generator=generator).tolist()
    stream = torch.tensor([id for number in order for id in documents[number]])
    found = torch.cat([batches.batch(n).ids for n in range(batches.batches_per_pass)])
    for row, place in zip(found, rows, strict=False):
        places = (shift + place * context + torch.arange(context)) % total
        assert torch.equal(row, stream[places])
