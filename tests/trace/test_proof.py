"""The proof passes what is exact and catches what is not."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from clearhead.errors import InputError
from clearhead.trace.proving.probes import project
from clearhead.trace.proving.tolerance import TOLERANCES
from clearhead.trace.record import LayerRecord
from clearhead.trace.row_rules import RowMask, RowRules
from clearhead.trace.seen import Seen
from tests.shared.synthetic import Options, synthetic


@pytest.mark.parametrize(
    "options",
    [
        Options(),
        Options(causal=True, kv_heads=2, group=3, keys=17, batch=2),
        Options(causal=True, window=3, softcap=2.0, sinks=True),
        Options(padded=True, batch=2, bias="distance", blind=True),
        Options(causal=True, bias="distance", kv_heads=2, group=3),
        Options(dense=True, bias="dense", kv_heads=3),
        Options(dtype=torch.float64, sinks=True),
        Options(dtype=torch.bfloat16, causal=True),
        Options(dtype=torch.float16, bias="key"),
        Options(spread=40.0, causal=True, key_dim=64),
    ],
    ids=repr,
)
def test_exact_layers_pass(options: Options) -> None:
    for rows in (4, None):
        proof = Seen([synthetic(options).record]).verify(rows)
        layer = proof.layers[0]
        assert proof.agrees and layer.reason == "", str(proof)
        assert proof.exact is layer.exact is (rows is None)
        assert layer.verdict == ("exact" if rows is None else "sampled")
        assert layer.above_mask == 0
        assert layer.row_sums <= layer.tolerance.sums
        assert layer.output is not None and layer.output <= layer.tolerance.output
        assert layer.rows == (rows or 11) * options.batch * options.heads
        assert layer.tolerance == TOLERANCES[options.dtype]
    assert layer.blind_rows == (options.batch if options.blind else 0)


def test_the_stamp_is_one_line() -> None:
    records = [
        synthetic(Options(seed=i, name=f"L{i}", causal=True, blind=i == 1)).record for i in range(3)
    ]
    stamp = str(Seen(records).verify())
    assert stamp.startswith("exact: 3 layers; rows sum to 1 ± ") and "\n" not in stamp
    assert "nothing above the mask, Σ weight·v = output ± " in stamp
    assert stamp.endswith("1 rows see nothing (33 rows)")
    with_sinks = str(Seen([synthetic(Options(sinks=True, values=False)).record]).verify())
    assert "consistent: 1 layer; rows sum to 1 with their sink ± " in with_sinks
    assert "output" not in with_sinks


def broken(record: LayerRecord, **changes: object) -> LayerRecord:
    parts = {
        "facts": record.facts, "query": record.query, "key": record.key, "logsum": record.logsum,
        "value": record.value, "output": record.output, "sinks": record.sinks,
        "pieces": record.pieces,
    } | changes  # fmt: skip
    return LayerRecord(**parts)  # type: ignore[arg-type]


def verdict(record: LayerRecord) -> str:
    proof = Seen([synthetic(Options(name="L0")).record, record]).verify()
    assert not proof.exact and [layer.name for layer in proof.failed] == [record.facts.name]
    assert str(proof) == f"NOT exact: 1 of 2 layers fail, first L1: {proof.failed[0].reason}"
    assert str(proof.failed[0]).startswith("L1: FAILS: ")
    return proof.failed[0].reason


def test_every_kind_of_wrong_is_caught() -> None:
    good = synthetic(Options(name="L1", causal=True)).record
    assert good.value is not None and good.output is not None
    scaled = broken(good, facts=replace(good.facts, scale=0.5))
    assert "the sum of a row is off by" in verdict(scaled)
    unmasked = broken(good, pieces=[RowRules(11, 11)], facts=replace(good.facts, causal=False))
    assert "the sum of a row is off" in verdict(unmasked)
    assert "lies where the query may not look" in verdict(broken(good, pieces=[RowRules(11, 11)]))
    low = torch.zeros(1, 11, dtype=torch.long)
    narrow = RowMask(low, torch.arange(11)[None])
    assert "the sum of a row is off by" in verdict(broken(good, pieces=[RowRules(11, 11, narrow)]))
    assert "Σ weight · value differs from the layer's output by" in verdict(
        broken(good, value=good.value.roll(1, dims=2))
    )
    assert "tolerance 2e-05" in verdict(broken(good, output=good.output + 1e-3))
    assert "hold NaN or infinity" in verdict(broken(good, query=good.query * torch.nan))
    sunk = synthetic(Options(name="L1", sinks=True)).record
    assert sunk.sinks is not None
    assert "the sum with the sink's share is off" in verdict(broken(sunk, sinks=sunk.sinks + 1))


def test_a_weight_that_only_float64_catches() -> None:
    """Two rows of keys swapped against each other: sums stay 1, weights do not."""
    good = synthetic(Options(name="L1", values=False)).record
    proof = Seen([broken(good, logsum=good.logsum + 1e-4)]).verify()
    assert not proof.exact
    assert proof.layers[0].reference > 1e-6


def test_rows_must_be_a_count() -> None:
    seen = Seen([synthetic(Options()).record])
    with pytest.raises(InputError, match="rows counts sampled rows and must be 1 or more"):
        seen.verify(0)
    assert seen.verify(1).layers[0].rows == 1


@pytest.mark.parametrize("spread", [10.0, 1000.0])
def test_large_scores_raise_no_alarm(spread: float) -> None:
    """Rows stay within 1e-6 of the plain softmax, maps within 2e-5."""
    made = synthetic(Options(spread=spread, causal=True, key_dim=64, queries=29, keys=29))
    seen = Seen([made.record])
    assert seen.verify().exact, str(seen.verify())
    assert (seen["L0"].weights() - made.weights[0]).abs().max() < 1e-6
    assert (seen["L0"].map(29).cells - made.weights[0]).abs().max() < 2e-5


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("spread", [1.0, 300.0, 3_000.0])
def test_no_score_excuses_a_row_that_is_far_off(dtype: torch.dtype, spread: float) -> None:
    """However large the scores: a row beyond the largest tolerance is never called exact."""
    record = synthetic(Options(spread=spread, key_dim=64, dtype=dtype)).record
    assert record.output is not None and record.value is not None
    largest = TOLERANCES[dtype].largest
    unit = float(project(record.value).abs().max())
    assert Seen([record]).verify().exact
    right = record.output.clone()
    for off in (1.5, 40.0):
        step = torch.zeros_like(right[0, 0, 3])
        step[0] = off * largest * unit * right.shape[-1] ** 0.5
        record.output[0, 0, 3] = right[0, 0, 3] + step
        layer = Seen([record]).verify().layers[0]
        assert not layer.exact and (layer.unproven or layer.reason), str(layer)
        assert layer.output is not None and layer.output > largest


def test_a_row_whose_output_is_not_a_number_proves_nothing() -> None:
    record = synthetic(Options()).record
    assert record.output is not None
    record.output[0, 0, 3] = torch.nan
    layer = Seen([record]).verify().layers[0]
    assert (layer.verdict, layer.unproven, layer.exact) == ("consistent", 1, False)
    record.logsum[0, 0, 3] = torch.nan  # its weights are not numbers either, and shown as such
    seen = Seen([record])
    assert seen.verify().exact and bool(seen["L0H0"].row(3).isnan().all())
