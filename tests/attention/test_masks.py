from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from clearhead.attention import masks
from clearhead.attention.masks import Block, Mask
from clearhead.errors import InputError, ShapeError

sizes = st.integers(1, 8)
offsets = st.none() | st.integers(-9, 9)
counts = st.integers(0, 9)


def loop(queries: int, keys: int, sees: Callable[[int, int], bool]) -> list[list[bool]]:
    """Brute force: every cell of the map asked one by one."""
    return [[sees(query, key) for key in range(keys)] for query in range(queries)]


def stands(query: int, queries: int, keys: int, offset: int | None) -> int:
    return query + (keys - queries if offset is None else offset)


def block(rows: range, columns: range, queries: int, keys: int) -> Block:
    return Block(rows, columns, queries, keys, torch.device("cpu"))


@given(sizes, sizes, offsets)
def test_causal(queries: int, keys: int, offset: int | None) -> None:
    wanted = loop(queries, keys, lambda q, k: k <= stands(q, queries, keys, offset))
    assert masks.causal(offset).tensor(queries, keys).tolist() == wanted


@given(sizes, sizes, counts, counts, offsets)
def test_window(queries: int, keys: int, before: int, after: int, offset: int | None) -> None:
    def sees(query: int, key: int) -> bool:
        own = stands(query, queries, keys, offset)
        return own - before <= key <= own + after

    mask = masks.window(before, after, offset)
    assert mask.tensor(queries, keys).tolist() == loop(queries, keys, sees)


@given(sizes, sizes, counts, offsets)
def test_prefix(queries: int, keys: int, length: int, offset: int | None) -> None:
    def sees(query: int, key: int) -> bool:
        return key < length or key <= stands(query, queries, keys, offset)

    assert masks.prefix(length, offset).tensor(queries, keys).tolist() == loop(queries, keys, sees)


@given(sizes, sizes, st.lists(counts, min_size=1, max_size=3))
def test_lengths(queries: int, keys: int, real: list[int]) -> None:
    seen = masks.lengths(torch.tensor(real)).tensor(queries, keys)
    assert seen.shape == (len(real), 1, queries, keys)
    for row, count in enumerate(real):
        wanted = loop(queries, keys, lambda q, k, count=count: k < count)  # type: ignore[misc]
        assert seen[row, 0].tolist() == wanted
        assert masks.lengths(count).tensor(queries, keys).tolist() == wanted


@given(sizes, st.lists(st.lists(st.booleans(), min_size=5, max_size=5), min_size=1, max_size=3))
def test_padding(queries: int, real: list[list[bool]]) -> None:
    seen = masks.padding(torch.tensor(real)).tensor(queries, 5)
    assert seen.shape == (len(real), 1, queries, 5)
    for row, flags in enumerate(real):
        assert seen[row, 0].tolist() == [flags] * queries


@given(st.lists(st.integers(0, 2), min_size=1, max_size=8), st.data())
def test_documents(ids: list[int], data: st.DataObject) -> None:
    keys = len(ids)
    queries = data.draw(st.integers(1, keys))
    wanted = loop(queries, keys, lambda q, k: ids[q + keys - queries] == ids[k])
    assert masks.documents(torch.tensor(ids)).tensor(queries, keys).tolist() == wanted
    other = [1 - number for number in ids]
    batch = masks.documents(torch.tensor([ids, other])).tensor(queries, keys)
    assert batch.shape == (2, 1, queries, keys)
    assert batch[0, 0].tolist() == batch[1, 0].tolist() == wanted


@given(sizes, sizes, st.lists(st.integers(-9, 9), min_size=1, max_size=3), counts, counts)
def test_offsets_of_each_row(
    queries: int, keys: int, offsets: list[int], before: int, after: int
) -> None:
    every = torch.tensor(offsets)
    for together, alone in (
        (masks.causal(every), masks.causal),
        (masks.window(before, after, every), lambda offset: masks.window(before, after, offset)),
        (masks.prefix(3, every), lambda offset: masks.prefix(3, offset)),
    ):
        seen = together.tensor(queries, keys)
        assert seen.shape == (len(offsets), 1, queries, keys)
        for row, offset in enumerate(offsets):
            assert seen[row, 0].equal(alone(offset).tensor(queries, keys))


@given(sizes, sizes, offsets, counts, st.integers(0, 2**16))
def test_rules_combine_like_booleans(
    queries: int, keys: int, offset: int | None, before: int, seed: int
) -> None:
    drawn = torch.rand(queries, keys, generator=torch.Generator().manual_seed(seed)) > 0.5
    causal, window = masks.causal(offset), masks.window(before)
    a, b = causal.tensor(queries, keys), window.tensor(queries, keys)
    for mask, wanted in (
        (causal & window, a & b),
        (causal | window, a | b),
        (~causal, ~a),
        (~(causal | window) & window, ~(a | b) & b),
        (causal & drawn, a & drawn),
        (drawn & causal, drawn & a),
        (causal | drawn, a | drawn),
        (drawn | causal, drawn | a),
        (~masks.dense(drawn), ~drawn),
    ):
        assert isinstance(mask, Mask)
        assert mask.tensor(queries, keys).equal(wanted)


@st.composite
def rules(draw: st.DrawFn) -> Mask:
    """Any rule, alone or combined."""
    drawn: Mask = draw(
        st.builds(masks.causal, offsets)
        | st.builds(masks.window, counts, counts, offsets)
        | st.builds(masks.prefix, counts, offsets)
        | st.builds(masks.lengths, counts)
    )
    for _ in range(draw(st.integers(0, 2))):
        other = draw(st.builds(masks.causal, offsets) | st.builds(masks.window, counts, counts))
        drawn = draw(st.sampled_from([drawn & other, drawn | other, other & ~drawn]))
    return drawn


@settings(max_examples=300)
@given(rules(), sizes, sizes, st.data())
def test_blocks_reach_and_full_agree_with_the_whole_mask(
    mask: Mask, queries: int, keys: int, data: st.DataObject
) -> None:
    whole = mask.tensor(queries, keys)
    first, last = sorted((data.draw(st.integers(0, queries - 1)), data.draw(sizes) - 1))
    rows = range(first, min(last + 1, queries))
    left = data.draw(st.integers(0, keys - 1))
    columns = range(left, data.draw(st.integers(left + 1, keys)))
    part = whole[rows.start : rows.stop, columns.start : columns.stop]

    asked = block(rows, columns, queries, keys)
    assert mask.rule(asked).expand(len(rows), len(columns)).equal(part)
    if mask.full(asked):
        assert part.all()
    reach = mask.reach(asked)
    assert reach.stop - reach.start >= 0
    assert len(reach) == 0 or columns.start <= reach.start < reach.stop <= columns.stop
    outside = [key for key in columns if key not in reach]
    assert not whole[rows.start : rows.stop, outside].any()


def test_reach_and_full_do_save_work() -> None:
    causal, near = masks.causal(), masks.causal() & masks.window(2)
    rows = block(range(5, 7), range(11), 11, 11)
    assert causal.reach(rows) == range(7)
    assert near.reach(rows) == range(3, 7)
    assert causal.full(block(range(5, 7), range(6), 11, 11))
    assert not causal.full(block(range(5, 7), range(7), 11, 11))
    assert near.full(block(range(5, 6), range(3, 6), 11, 11))
    assert (causal | masks.lengths(3)).full(block(range(5, 7), range(6), 11, 11))


def test_a_tensor_of_any_size_that_repeats() -> None:
    for shape in ((5, 7), (1, 7), (5, 1), (1, 1), (2, 3, 5, 7), (2, 1, 1, 7)):
        drawn = torch.rand(shape, generator=torch.Generator().manual_seed(0)) > 0.5
        seen = masks.dense(drawn).tensor(5, 7)
        assert seen.equal(drawn.expand(*shape[:-2], 5, 7))


@pytest.mark.parametrize(
    ("mask", "queries", "keys", "drawing"),
    [
        (masks.causal(), 3, 3, "■ · ·\n■ ■ ·\n■ ■ ■"),
        (masks.causal(), 2, 5, "■ ■ ■ ■ ·\n■ ■ ■ ■ ■"),
        (masks.causal(offset=0), 2, 5, "■ · · · ·\n■ ■ · · ·"),
        (masks.causal(), 3, 2, "· ·\n■ ·\n■ ■"),
        (masks.window(1, 1), 4, 4, "■ ■ · ·\n■ ■ ■ ·\n· ■ ■ ■\n· · ■ ■"),
        (masks.causal() & masks.window(1), 4, 4, "■ · · ·\n■ ■ · ·\n· ■ ■ ·\n· · ■ ■"),
        (masks.prefix(2), 3, 3, "■ ■ ·\n■ ■ ·\n■ ■ ■"),
        (masks.lengths(2), 2, 3, "■ ■ ·\n■ ■ ·"),
        (masks.documents(torch.tensor([7, 7, 4])), 3, 3, "■ ■ ·\n■ ■ ·\n· · ■"),
        (~masks.causal(), 3, 3, "· ■ ■\n· · ■\n· · ·"),
        (masks.causal(), 0, 3, ""),
    ],
)
def test_drawings(mask: Mask, queries: int, keys: int, drawing: str) -> None:
    assert mask.draw(queries, keys) == drawing


def test_the_rows_of_a_batch_are_drawn_one_at_a_time() -> None:
    mask = masks.lengths(torch.tensor([1, 3]))
    assert mask.draw(1, 3) == "■ · ·"
    assert mask.draw(1, 3, row=1) == "■ ■ ■"
    for row in (-1, 2):
        with pytest.raises(InputError, match=rf"row .* from 0 to 1; got {row}"):
            mask.draw(1, 3, row=row)


@pytest.mark.parametrize(("before", "after", "name"), [(-1, 0, "before"), (2, -3, "after")])
def test_a_window_counts_keys(before: int, after: int, name: str) -> None:
    with pytest.raises(InputError, match=rf"{name} .* of 0 or more; got"):
        masks.window(before, after)


@pytest.mark.usefixtures("unchecked")
def test_what_is_no_mask() -> None:
    with pytest.raises(InputError, match=r"must be boolean \(True = may attend\); got torch.float"):
        masks.dense(torch.zeros(2, 3))
    with pytest.raises(InputError, match=r"a rule from masks or a boolean tensor; got list"):
        masks.causal() & [[True]]  # type: ignore[operator]
    with pytest.raises(ShapeError, match=r"needs the axes \(…, query, key\); got \(3,\)"):
        masks.dense(torch.ones(3, dtype=torch.bool))


def test_a_mask_for_other_sizes() -> None:
    mask = masks.causal() & torch.ones(5, 7, dtype=torch.bool)
    assert mask.tensor(5, 7).shape == (5, 7)
    for queries, keys in ((5, 11), (5, 3), (3, 7), (11, 7)):
        wanted = rf"wanted \(…, {queries} queries, {keys} keys\) or 1.*; got \(5, 7\)"
        with pytest.raises(ShapeError, match=wanted):
            mask.tensor(queries, keys)


def test_documents_want_one_id_for_each_key() -> None:
    with pytest.raises(ShapeError, match=r"an id for each of 5 keys; got 3"):
        masks.documents(torch.tensor([0, 0, 1])).tensor(5, 5)
    with pytest.raises(ShapeError, match=r"ids must be \(key\) or \(batch, key\); got \(2, 3, 5\)"):
        masks.documents(torch.zeros(2, 3, 5, dtype=torch.long))


def test_as_mask_leaves_rules_alone() -> None:
    rule = masks.causal()
    drawn: Tensor = torch.eye(3, dtype=torch.bool)
    assert masks.as_mask(rule) is rule
    assert masks.as_mask(drawn).tensor(3, 3).equal(drawn)
