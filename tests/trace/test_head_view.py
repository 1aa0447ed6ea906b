"""Rows, columns, tiles, entropy and output against plain softmax in float64."""

from __future__ import annotations

import inspect
import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from clearhead.errors import InputError
from clearhead.trace import exact
from clearhead.trace.cost import Limit
from clearhead.trace.head_view import HeadView
from clearhead.trace.seen import Seen
from clearhead.trace.selection import Axis
from clearhead.trace.top_key import TopKey
from tests.shared.synthetic import Options, Synthetic, passage, synthetic


def close(found: Tensor, wanted: Tensor, tolerance: float = 2e-6) -> None:
    torch.testing.assert_close(found.double(), wanted, atol=tolerance, rtol=tolerance)


@st.composite
def options(draw: st.DrawFn) -> Options:
    queries = draw(st.integers(1, 13))
    return Options(
        seed=draw(st.integers(0, 2**31)),
        batch=draw(st.integers(1, 2)),
        kv_heads=draw(st.integers(1, 2)),
        group=draw(st.integers(1, 3)),
        queries=queries,
        keys=queries + draw(st.integers(0, 6)),
        causal=draw(st.booleans()),
        window=draw(st.sampled_from([None, 1, 3])),
        padded=draw(st.booleans()),
        dense=draw(st.sampled_from([False, False, True])),
        bias=draw(st.sampled_from([None, "key", "distance", "dense"])),
        softcap=draw(st.sampled_from([None, 2.0])),
        sinks=draw(st.booleans()),
        blind=draw(st.booleans()),
        dtype=draw(st.sampled_from([torch.float32, torch.float64, torch.bfloat16])),
    )


def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a few cells, so that small maps have many of them."""
    from clearhead.trace import head_view, pooled_map

    for module in (exact, head_view, pooled_map):
        monkeypatch.setattr(module, "BLOCK_ROWS", 4)
        monkeypatch.setattr(module, "BLOCK_COLUMNS", 5)
    monkeypatch.setattr(exact, "DENSE_MASK", 30)


@pytest.fixture(autouse=True, params=["whole", "small"], ids=lambda param: f"{param} blocks")
def blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "small":
        small_blocks(monkeypatch)


@settings(max_examples=25)
@given(given_options=options())
def test_every_view_is_the_plain_softmax(given_options: Options) -> None:
    made = synthetic(given_options)
    for batch in range(given_options.batch):
        layer = Seen([made.record])["L0"].of(batch=batch)
        weights, output = made.weights[batch], made.output[batch]
        close(layer.weights(), weights)
        close(layer.row(-1), weights[:, -1])
        close(layer.column(0), weights[:, :, 0])
        close(layer.output(), output, 1e-5)
        logs = torch.where(weights > 0, weights, 1.0).log()
        close(layer.entropy(), -(weights * logs).sum(-1), 1e-5)
        rows = torch.arange(0, given_options.queries, 2)
        columns = torch.randperm(given_options.keys)[: 1 + given_options.keys // 2]
        close(layer.weights(rows.tolist(), columns), weights[:, rows][:, :, columns])
        close(layer.entropy(rows), -(weights * logs).sum(-1)[:, rows], 1e-5)


def test_one_weight_by_hand() -> None:
    """Two keys, scores 0.7·ln 3/0.7 and 0: shares 3/4 and 1/4."""
    record = synthetic(Options(queries=1, keys=2, key_dim=1, values=False)).record
    record.query.fill_(math.log(3) / 0.7)
    record.key.copy_(torch.tensor([[[[1.0], [0.0]]]]))
    record.logsum.fill_(math.log(3 + 1))
    head = Seen([record])["L0H0"]
    torch.testing.assert_close(head.row(0), torch.tensor([0.75, 0.25]))
    entropy = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    torch.testing.assert_close(head.entropy(), torch.tensor([entropy]))


@pytest.fixture
def made() -> Synthetic:
    return synthetic(Options(batch=2, kv_heads=2, group=3, queries=11, keys=13, causal=True))


@pytest.fixture
def seen(made: Synthetic) -> Seen:
    return Seen([made.record])


def test_heads_by_name(seen: Seen, made: Synthetic) -> None:
    weights = made.weights[0]
    assert seen["L0H4"].row(3).shape == (13,)
    assert seen["L0H4"].name == "L0H4"
    close(seen["L0H4"].weights(), weights[4])
    close(seen["L0H2:4"].weights(), weights[2:4])
    close(seen["L0H5,1"].weights(), weights[[5, 1]])
    close(seen["L0"][1:3].weights(), weights[1:3])
    close(seen["L0"][5].weights(), weights[5])
    close(seen["L00H05"].weights(), weights[5])
    assert seen["L0H2:4"].name == "L0H2,3"


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        (2, 3), (-1, -2), (slice(2, 9, 3), None), (range(3, 7), range(9, 2, -2)), ([5, 1, 5], [0]),
        (slice(None, None, -1), slice(-4, None)), (torch.tensor([1, 2]), [-1, 3]),
        (range(0), slice(5, 2)), (torch.tensor(4), range(13)), (range(-3, 0), 0),
    ],
)  # fmt: skip
def test_rows_and_columns_are_chosen_as_in_python(
    seen: Seen, made: Synthetic, rows: Any, columns: Any
) -> None:
    def plain(chosen: Any, length: int) -> Any:
        if chosen is None:
            return list(range(length))
        if isinstance(chosen, slice):
            return list(range(length))[chosen]
        return list(chosen) if isinstance(chosen, range) else chosen

    wanted = made.weights[0, 4][plain(rows, 11)]
    close(seen["L0H4"].weights(rows, columns), wanted[..., plain(columns, 13)])


def test_top_is_sorted_and_named(seen: Seen, made: Synthetic) -> None:
    top = seen["L0H4"].top(7, 3)
    values, places = made.weights[0, 4, 7].topk(3)
    assert [key.position for key in top if isinstance(key, TopKey)] == places.tolist()
    assert all(isinstance(key, TopKey) and key.token is None for key in top)
    assert [len(keys) for keys in seen["L0"].top(-1, 99) if isinstance(keys, list)] == [13] * 6
    assert values[0] == pytest.approx(top[0].weight if isinstance(top[0], TopKey) else None, 1e-5)


def test_rows_and_columns_by_token(made: Synthetic) -> None:
    tokens = passage("The| kids| saw| the| un|believ|able| lions| so| they| left| the| kids")
    record = synthetic(Options(queries=12, keys=13)).record  # the first key was cached before
    head = Seen([record], tokens)["L0H0"]
    assert torch.equal(head.row("they"), head.row(8))
    assert torch.equal(head.weights("they", ["saw", 0]), head.weights(8, [2, 0]))
    assert head.column(" left").shape == (12,)
    assert [key.token for key in head.top("so", 13) if isinstance(key, TopKey)].count(" kids") == 2
    with pytest.raises(InputError, match=r"'kids' occurs 2 times among the columns: at 1, 12"):
        head.column("kids")
    with pytest.raises(InputError, match=r"'unbelievable' is 3 tokens: 3, 4, 5 \(\[' un', "):
        head.row("unbelievable")
    with pytest.raises(InputError, match=r"no row reads 'tigers'.\nHint: its tokens are ' kids', "):
        head.row("tigers")


def test_a_long_text_is_looked_at_row_by_row() -> None:
    """Scattered rows over more keys than a mask is spelled out for."""
    made = synthetic(Options(queries=29, keys=31, causal=True, window=7, bias="distance"))
    close(Seen([made.record])["L0H0"].weights([28, 0, 3], None), made.weights[0, 0, [28, 0, 3]])


def test_reach_covers_what_is_visible() -> None:
    for given_options in (
        Options(causal=True, window=3, keys=17), Options(causal=True, blind=True),
        Options(dense=True), Options(), Options(window=2, padded=True, batch=2),
    ):  # fmt: skip
        made = synthetic(given_options)
        head = exact.ExactHead(made.record, 0, 0)
        for start in range(0, 11, 3):
            rows = range(start, min(start + 3, 11))
            outside = torch.ones(given_options.keys, dtype=torch.bool)
            reach = head.reach(rows)
            outside[reach.start : reach.stop] = False
            assert not made.weights[0, 0, rows.start : rows.stop][:, outside].any()
    causal = exact.ExactHead(synthetic(Options(causal=True, window=3)).record, 0, 0)
    assert causal.reach(range(6, 8)) == range(4, 8)


def test_half_precision_is_computed_in_float32() -> None:
    made = synthetic(Options(dtype=torch.float16, causal=True))
    assert Seen([made.record])["L0H0"].row(4).dtype == torch.float32
    assert (
        Seen([synthetic(Options(dtype=torch.float64)).record])["L0"].row(4).dtype == torch.float64
    )


def test_a_row_that_sees_nothing_has_weights_of_zero() -> None:
    made = synthetic(Options(blind=True))
    head = Seen([made.record])["L0H0"]
    for logsum in (0.0, -torch.inf):  # kernels say either
        made.record.logsum[0, 0, 1] = logsum
        assert head.row(1).tolist() == [0.0] * 11
        assert head.entropy(1) == 0
        assert head.map(3, "max").cells.isfinite().all()


def test_only_some_heads_were_kept() -> None:
    whole = synthetic(Options(kv_heads=5, values=False))
    facts = replace(whole.record.facts, heads=5)
    kept = [1, 4]
    record = type(whole.record)(
        facts, whole.record.query[:, kept], whole.record.key[:, kept],
        whole.record.logsum[:, kept], pieces=whole.record.pieces, head_numbers=(1, 4),
    )  # fmt: skip
    seen = Seen([record])
    close(seen["L0H4"].weights(), whole.weights[0, 4])
    assert seen["L0"].heads == (1, 4)
    with pytest.raises(InputError, match="L0H2: heads 1, 4 were kept"):
        seen["L0H2"]
    with pytest.raises(InputError, match="this model has 1 layer of 5 heads"):
        seen["L0H7"]


def bare(method: Any) -> Any:
    """The method without the tests' type check, as users have it."""
    return inspect.unwrap(method)


def view_errors(head: HeadView) -> list[tuple[Any, str]]:
    return [
        (lambda: head.row(11), r"row 11 is out of range: there are 11 rows, 0 … 10"),
        (lambda: head.row(-12), "row -12 is out of range"),
        (lambda: head.column(13), "column 13 is out of range: there are 13 columns"),
        (lambda: head.weights([1, 20], None), "row 20 is out of range"),
        (lambda: head.weights(range(5, 15), None), "row 14 is out of range"),
        (lambda: head.row("they"), "the tokens of this trace are not known"),
        (lambda: head.rows.position(1.5), "a row is chosen by its index"),
        (lambda: head.weights(True, None), "a row is chosen by its index"),
        (lambda: bare(Axis.places)(head.rows, {1: 2}), "rows are chosen by index, slice, range"),
        (
            lambda: head.top(0, 0),
            r"count .of the top keys. .* of 1 or more; got 0",
        ),
        (
            lambda: head.of(batch=2),
            r"batch .*; 2 were seen. .* from -2 to 1; got 2",
        ),
        (lambda: head.map(0), r"size .cells. must be a whole number of 1 or more; got 0"),
        (lambda: bare(HeadView.map)(head, 9, "median"), "pool must be one of 'max', 'mean', 'sum'"),
        (lambda: head.map(9, rows=range(0, 9, 2)), "a map wants consecutive rows"),
        (lambda: head.map(9, columns=slice(4, 4)), "a map wants consecutive columns, at least one"),
        (lambda: head.words(), "no words, as the tokens of its rows are not known"),
        (
            lambda: bare(HeadView.cost)(head, "picture"),
            "view must be one of 'row', 'column'",
        ),
        (lambda: head.weights(limit=Limit(bytes=10)), r"weights of L0H4 would take 32 MB, about"),
        (lambda: head.entropy(limit=Limit(seconds=0.0)), r"allow it with limit=None"),
    ]


@pytest.mark.parametrize("number", range(19))
def test_bad_choices_are_explained(seen: Seen, number: int) -> None:
    wrong, words = view_errors(seen["L0H4"])[number]
    with pytest.raises(InputError, match=words):
        wrong()


def test_output_needs_values() -> None:
    record = synthetic(Options(values=False)).record
    with pytest.raises(InputError, match=r"L0H0: the values were not kept(.|\n)*values=True"):
        Seen([record])["L0H0"].output()


@pytest.mark.parametrize("softcap", [None, 2.0])
def test_nothing_is_rounded_by_the_autocast_of_whoever_looks(softcap: float | None) -> None:
    seen = Seen([synthetic(Options(queries=9, keys=11, softcap=softcap)).record])
    head = seen["L0H0"]

    def looks() -> list[Tensor]:
        return [head.weights(), head.entropy(), head.output(), head.map(5).cells]

    plain, proof = looks(), str(seen.verify())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        again, proof_again = looks(), str(seen.verify())
    assert proof == proof_again
    assert all(torch.equal(one, other) for one, other in zip(plain, again, strict=True))
