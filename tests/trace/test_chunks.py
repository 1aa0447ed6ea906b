from __future__ import annotations

import torch
from torch import Tensor

from clearhead.trace.chunks import Chunk, LaterSums, Parents, concatenated, reordered
from clearhead.trace.row_rules import RowRules


def chunk(rows: int, seed: int, *, value: bool = True, parents: Parents | None = None) -> Chunk:
    make = torch.Generator().manual_seed(seed)

    def numbers(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=make)

    return Chunk(
        numbers(3, 4, rows, 5), numbers(3, 2, rows, 5), numbers(3, 2, rows, 7) if value else None,
        numbers(3, 4, rows), numbers(3, 4, rows, 7) if value else None, RowRules(rows, rows),
        parents,
    )  # fmt: skip


def test_concatenated_rows_and_keys_follow_each_other() -> None:
    one, two = chunk(2, 0), chunk(3, 1)
    both = concatenated([one, two], one.piece)
    for name in ("query", "key", "value", "logsum", "output"):
        found = getattr(both, name)
        assert torch.equal(found[:, :, :2], getattr(one, name))
        assert torch.equal(found[:, :, 2:], getattr(two, name))


def test_values_are_lost_if_one_chunk_has_none() -> None:
    both = concatenated([chunk(2, 0), chunk(3, 1, value=False)], RowRules(5, 5))
    assert both.value is None and both.output is None and both.query.shape[2] == 5


def test_reordered_takes_sequences_several_times() -> None:
    given = chunk(2, 0)
    found = reordered(given, torch.tensor([2, 0, 2]))
    for name in ("query", "key", "value", "logsum", "output"):
        for now, before in enumerate((2, 0, 2)):
            assert torch.equal(getattr(found, name)[now], getattr(given, name)[before])


def test_order_is_filled_while_the_step_runs() -> None:
    parents = Parents()
    given = chunk(1, 0, parents=parents)
    assert chunk(1, 0).order is None and given.order is None
    parents.order = torch.tensor([1, 1, 0])
    assert given.order is parents.order


def test_sums_that_come_later_are_computed_once_when_somebody_asks() -> None:
    asked: list[int] = []

    def compute() -> Tensor:
        asked.append(1)
        return torch.ones(3, 4, 2)

    now = chunk(2, 0)
    later = now.changed(logsum=LaterSums((3, 4, 2), compute))
    assert later.nbytes == now.nbytes and not asked
    assert torch.equal(later.logsum, torch.ones(3, 4, 2)) and later.logsum is later.logsum
    both = concatenated([later, now], now.piece)
    assert len(asked) == 1 and torch.equal(both.logsum[:, :, :2], later.logsum)
