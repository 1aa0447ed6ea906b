from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from clearhead.trace.chunks import TENSORS
from clearhead.trace.proof import prove
from clearhead.trace.proving.recomputed import recomputed
from clearhead.trace.record import LayerRecord
from clearhead.trace.row_rules import RowRules
from clearhead.trace.watching.watch import watch
from tests.shared.synthetic import Options, synthetic


@pytest.mark.parametrize(
    "options",
    [
        Options(causal=True, kv_heads=2, group=3, keys=17, batch=2),
        Options(causal=True, window=3, softcap=2.0, sinks=True),
        Options(padded=True, batch=2, bias="distance", blind=True),
        Options(dtype=torch.float64),
    ],
    ids=repr,
)
def test_rows_come_out_as_recorded(options: Options) -> None:
    record = synthetic(options).record
    for rows in (list(range(11)), [0, 5, 10]):
        again = recomputed(record, 0, rows, None)
        assert (again.logsum - record.logsum[0][:, rows]).abs().max() < 1e-5
        assert again.above_diagonal == 0


class Net(nn.Module):
    def forward(self, states: Tensor) -> Tensor:
        out = torch.softmax(states @ states.mT * 0.3, dim=-1) @ (states + 1)
        return out.transpose(1, 2).flatten(2)


def seen_record() -> LayerRecord:
    torch.manual_seed(0)
    with watch(net := Net()) as seen:
        net(torch.randn(2, 3, 7, 11))
    assert prove(seen.records, None).exact
    return seen.records[0]


def falsified(record: LayerRecord, changes: dict[str, Tensor | None]) -> LayerRecord:
    tensors = {name: getattr(record, name) for name in TENSORS} | changes
    return LayerRecord(record.facts, **tensors, pieces=record.pieces)


def one_row(tensor: Tensor) -> Tensor:
    changed = tensor.clone()
    changed[1, 2, 4] += 0.5
    return changed


LIES: dict[str, Callable[[Tensor], Tensor]] = {
    "one row": one_row,
    "heads swapped": lambda tensor: tensor.flip(1),
    "sequences swapped": lambda tensor: tensor.flip(0),
    "negated": lambda tensor: -tensor,
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("name", [name for name in TENSORS if name not in ("value", "output")])
def test_a_falsified_tensor_is_found(name: str, lie: str) -> None:
    record = seen_record()
    wrong = falsified(record, {name: LIES[lie](getattr(record, name))})
    assert not prove([wrong], None).agrees


def test_a_lie_with_mended_sums_is_found() -> None:
    record = seen_record()
    query = record.query.roll(1, dims=2)
    scores = query @ record.key.mT * record.facts.scale
    wrong = falsified(record, {"query": query, "logsum": torch.logsumexp(scores, -1)})
    assert "differs from the layer's output" in prove([wrong], None).failed[0].reason
    swapped = {name: getattr(record, name).flip(1) for name in ("query", "key", "logsum")}
    assert not prove([falsified(record, swapped)], None).agrees


def test_a_falsified_mask_is_found() -> None:
    record = seen_record()
    record._pieces = [RowRules(7, 6)]
    assert not prove([record], None).agrees
