"""The pooled map against brute force, for sizes that do not divide."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from clearhead.trace import exact, head_view, pooled_map
from clearhead.trace.pooled_map import POOLS, Cells, Pool
from clearhead.trace.seen import Seen
from tests.shared.synthetic import Options, synthetic


def brute_force(
    weights: Tensor, row_edges: list[int], column_edges: list[int], pool: str
) -> Tensor:
    """Cell by cell; (query, key) → (row, column)."""
    plain = weights.numpy()
    reduce: Any = {"max": np.max, "mean": np.mean, "sum": np.sum}[pool]
    cells = [
        [reduce(plain[top:bottom, left:right]) for left, right in pairwise(column_edges)]
        for top, bottom in pairwise(row_edges)
    ]
    return torch.tensor(cells, dtype=torch.float64)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Options, int, Pool, tuple[int, int]]:
    queries = draw(st.integers(1, 19))
    options = Options(
        seed=draw(st.integers(0, 2**31)),
        queries=queries,
        keys=queries + draw(st.integers(0, 5)),
        kv_heads=1,
        group=2,
        causal=draw(st.booleans()),
        window=draw(st.sampled_from([None, None, 5])),
        dense=draw(st.sampled_from([False, False, True])),
        bias=draw(st.sampled_from([None, "distance"])),
        sinks=draw(st.booleans()),
        blind=draw(st.booleans()),
    )
    blocks = (draw(st.integers(2, 20)), draw(st.integers(2, 20)))
    return options, draw(st.integers(1, 25)), draw(st.sampled_from(POOLS)), blocks


@settings(max_examples=50)
@given(cases())
def test_every_cell_is_pooled_from_all_its_weights(
    case: tuple[Options, int, Pool, tuple[int, int]],
) -> None:
    options, size, pool, blocks = case
    made = synthetic(options)
    with pytest.MonkeyPatch.context() as patch:
        for module in (exact, head_view, pooled_map):
            patch.setattr(module, "BLOCK_ROWS", blocks[0])
            patch.setattr(module, "BLOCK_COLUMNS", blocks[1])
        found = Seen([made.record])["L0"].map(size, pool)
    shape = (2, min(size, options.queries), min(size, options.keys))
    assert tuple(found.cells.shape) == shape
    assert found.row_edges[0] == 0 and found.row_edges[-1] == options.queries
    for head in range(2):
        wanted = brute_force(made.weights[0, head], found.row_edges, found.column_edges, pool)
        torch.testing.assert_close(found.cells[head].double(), wanted, atol=3e-6, rtol=3e-6)


def test_a_single_bright_cell_survives_max_pooling() -> None:
    """One query of 1,013 looks at one far key and nowhere else."""
    record = synthetic(Options(queries=1013, keys=1013, values=False)).record
    record.query.zero_()
    record.key.zero_()
    record.query[0, 0, 700, 0] = record.key[0, 0, 123, 0] = 20.0
    record.logsum.copy_(torch.logsumexp(record.query @ record.key.transpose(2, 3) * 0.7, dim=3))
    found = Seen([record])["L0H0"].map(101)
    place = divmod(int(found.cells.argmax()), 101)
    rows, columns = found.cell(*place)
    assert 700 in rows and 123 in columns
    assert found.cells.max() > 0.999
    assert found.cells.flatten().kthvalue(101 * 101 - 1).values < 0.01


def test_sum_and_mean_keep_the_total() -> None:
    head = Seen([synthetic(Options(queries=37, keys=41, causal=True)).record])["L0H0"]
    total = head.map(8, "sum").cells.sum()
    assert total == pytest.approx(37, abs=1e-4)
    assert head.map(1, "sum").cells.item() == pytest.approx(37, abs=1e-4)
    assert head.map(1, "mean").cells.item() == pytest.approx(1 / 41, abs=1e-6)


def test_zooming_in_shows_the_same_weights() -> None:
    made = synthetic(Options(queries=37, keys=41, causal=True, window=11))
    found = Seen([made.record])["L0H0"].map(7, rows=range(5, 33), columns=slice(13, 36))
    assert (found.row_edges[0], found.row_edges[-1]) == (5, 33)
    assert found.cell(0, 0) == (range(5, 9), range(13, 16))
    wanted = brute_force(made.weights[0, 0], found.row_edges, found.column_edges, "max")
    torch.testing.assert_close(found.cells.double(), wanted, atol=3e-6, rtol=3e-6)


@given(st.integers(1, 500), st.integers(1, 60), st.integers(1, 9))
def test_cells_differ_by_one_and_parts_fall_on_their_edges(
    length: int, size: int, parts: int
) -> None:
    cells = Cells.of(range(3, 3 + length), size)
    assert set(cells.sizes().tolist()) <= {cells.longest, cells.longest - 1}
    if cells.longest > parts:
        assert cells.cut(parts).edges[::parts] == cells.edges


def test_no_block_is_larger_than_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is linear in tokens: whatever the size asked for, blocks stay small."""
    largest = 0
    plain = exact.ExactHead.scores

    def watched(self: exact.ExactHead, rows: exact.Positions, columns: exact.Positions) -> Tensor:
        nonlocal largest
        scores = plain(self, rows, columns)
        largest = max(largest, scores.numel())
        return scores

    monkeypatch.setattr(exact.ExactHead, "scores", watched)
    head = Seen([synthetic(Options(queries=1301, keys=1301, causal=True)).record])["L0H0"]
    for module in (exact, head_view, pooled_map):
        monkeypatch.setattr(module, "BLOCK_ROWS", 64)
        monkeypatch.setattr(module, "BLOCK_COLUMNS", 128)
    for size in (1, 7, 100, 1301):
        head.map(size, "sum")
    head.entropy()
    assert 0 < largest <= 2 * 64 * 128
