from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from clearhead.trace import exact
from clearhead.trace.exact import ExactHead, Positions, plain_of_heads
from tests.shared.synthetic import Options, synthetic

OPTIONS = Options(
    batch=2, kv_heads=2, group=3, queries=5, keys=7, causal=True, bias="distance", softcap=0.9,
    sinks=True,
)  # fmt: skip


@given(st.lists(st.integers(0, 10), max_size=7), st.integers(0, 5), st.integers(0, 7))
def test_positions_choose_as_a_list_does(index: list[int], start: int, stop: int) -> None:
    places, numbers = Positions.at(torch.tensor(index, dtype=torch.long)), torch.arange(11) * 3
    assert len(places) == len(index)
    assert places.of(numbers).tolist() == [3 * i for i in index]
    inside = numbers[places.run.start : places.run.stop]
    assert places.within(inside, 0).tolist() == [3 * i for i in index]
    part = places.part(slice(start, stop))
    assert part.of(numbers).tolist() == [3 * i for i in index[start:stop]]


def test_a_run_needs_no_index() -> None:
    assert Positions.at(torch.tensor([3, 4, 5])) == Positions(range(3, 6))
    assert Positions.at(torch.tensor([3, 5, 4])).index is not None


@pytest.mark.parametrize("dense_mask", [exact.DENSE_MASK, 1])
def test_any_block_is_the_plain_softmax(monkeypatch: pytest.MonkeyPatch, dense_mask: int) -> None:
    monkeypatch.setattr(exact, "DENSE_MASK", dense_mask)
    made = synthetic(OPTIONS)
    rows, columns = torch.tensor([4, 1, 1]), torch.tensor([0, 6, 3])
    for batch in range(2):
        for head in range(6):
            found = ExactHead(made.record, batch, head).weights(
                Positions.at(rows), Positions.at(columns)
            )
            wanted = made.weights[batch, head][rows][:, columns]
            assert (found - wanted).abs().max() < 2e-6


def test_reach_and_blocks_hold_every_visible_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "BLOCK_COLUMNS", 3)
    made = synthetic(Options(queries=11, keys=11, causal=True, window=4))
    head = ExactHead(made.record, 0, 0)
    assert head.reach(range(7, 9)) == range(4, 9)
    assert list(head.blocks(Positions(range(7, 9)))) == [range(4, 7), range(7, 9)]
    assert head.reach(range(0)) == range(11, 11)


@pytest.mark.parametrize(
    "options",
    [
        Options(kv_heads=2, group=3, queries=5, keys=7, causal=True, softcap=0.9, sinks=True),
        Options(batch=2, kv_heads=3, window=4, causal=True, padded=True),
        Options(kv_heads=2, group=2, dense=True, blind=True),
        Options(kv_heads=3, queries=7, keys=5),
    ],
)
def test_several_heads_at_once_are_each_alone(options: Options) -> None:
    """Bit for bit, whatever the mask; heads in any order, rows by range or by number."""
    record = synthetic(options).record
    for batch in range(options.batch):
        heads = [ExactHead(record, batch, place) for place in reversed(range(options.heads))]
        for rows in (Positions(range(1, 5)), Positions.at(torch.tensor([4, 0, 0]))):
            together = plain_of_heads(heads, rows)
            assert together is not None
            alone = torch.stack([head.plain(rows) for head in heads])
            assert torch.equal(together, alone)


def test_heads_with_biases_are_computed_one_by_one() -> None:
    heads = [ExactHead(synthetic(OPTIONS).record, 0, place) for place in range(6)]
    assert plain_of_heads(heads, Positions(range(5))) is None
