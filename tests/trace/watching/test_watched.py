from __future__ import annotations

import torch
from torch import nn

from clearhead.trace.watching.watch import watch


def test_the_repr_shows_sizes_runs_and_what_was_missed() -> None:
    layer, states = nn.MultiheadAttention(20, 4, batch_first=True), torch.randn(3, 7, 20)
    with watch(layer) as seen:
        assert repr(seen) == "Watched(no attention was seen)"
        layer(states, states, states)
        size = "1 layer × 4 heads, 7 queries × 7 keys, 3 sequences, 0.00638 MB"
        assert repr(seen) == f"Watched({size}; nothing missed)"
        fewer = states[:, :5]
        layer(fewer, fewer, fewer)
    assert repr(seen).endswith("; nothing missed; the last of 2 runs)")
    assert repr(seen.runs[0]) == f"Seen({size}; nothing missed)"
    assert repr(seen["L0H1"]) == (
        "HeadView(L0H1: 5 queries × 5 keys, sequence 0 of 3, tokens unknown)"
    )
    assert repr(seen["L0"].map(size=3)) == (
        "PooledMap(4 heads, 3 × 3 cells, the max of 5 queries × 5 keys)"
    )
    assert repr(seen.verify()).startswith("Proof(exact: 1 layer; rows sum to 1 ± ")
    assert repr(seen.records[0]) == "LayerRecord(L0, self: 3 × 4 heads, 5 queries × 5 keys)"
    seen.close()
    assert len(seen.runs) == 1 and seen.records == []


def test_the_size_counts_every_run_that_is_kept() -> None:
    layer = nn.MultiheadAttention(20, 4, batch_first=True)
    sizes = {}
    for kept in (None, 2, 1):
        with watch(layer, runs=kept) as seen:
            for length in (5, 7, 11):
                states = torch.randn(1, length, 20)
                layer(states, states, states)
        runs = [record.nbytes for run in seen.runs for record in run.records]
        assert len(runs) == (kept or 3) and seen.nbytes == sum(runs)
        sizes[kept] = seen.nbytes
    assert sizes[1] < sizes[2] < sizes[None]
