from __future__ import annotations

from typing import Any

import pytest
import torch

import clearhead as ch
from clearhead.errors import InputError
from clearhead.explain.roles.layer_weights import layer_weights, merged_to_units
from clearhead.trace.record import LayerRecord
from clearhead.trace.row_rules import RowRules
from clearhead.trace.seen import Seen


def watched(**options: Any) -> Seen:
    torch.manual_seed(3)
    module = ch.MultiHeadAttention(30, 6, key_dim=7, value_dim=3, kv_heads=2, **options).eval()
    with torch.no_grad(), ch.watch(module) as seen:
        module(torch.randn(3, 11, 30))
    return seen


@pytest.mark.parametrize(
    "options",
    [{}, {"causal": True}, {"causal": True, "window": 4}, {"softcap": 0.5}, {"sinks": True}],
    ids=["plain", "causal", "window", "softcap", "sinks"],
)
def test_weights_are_those_of_the_trace(options: dict[str, Any]) -> None:
    seen = watched(**options)
    weights, visible = layer_weights(seen.records[0], 2)  # the third row is padding
    assert weights.shape == (2, 6, 11, 11) and visible.shape == (2, 11, 11)
    for batch in range(2):
        assert torch.allclose(weights[batch], seen["L0"].of(batch).weights(), atol=1e-6)
    assert torch.equal(visible[1], (weights[1] > 0).any(dim=0))


def test_a_run_in_several_steps_is_refused() -> None:
    whole = watched(causal=True).records[0]
    record = LayerRecord(
        whole.facts, whole.query, whole.key, whole.logsum, pieces=[RowRules(7, 7), RowRules(4, 11)]
    )
    with pytest.raises(InputError, match="L0 was run in 2 steps; roles are counted on whole"):
        layer_weights(record, 3)


def test_units_sum_what_comes_in_and_average_what_goes_out() -> None:
    weights = torch.tensor([[0.5, 0.25, 0.25], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6]])[None, None]
    owners = torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 1, 0]])[None]  # tokens 1 and 2 are one unit
    found = merged_to_units(weights, owners)[0, 0]
    expected = torch.tensor([[0.5, 0.5, 0.0], [0.15, 0.85, 0.0], [0.0, 0.0, 0.0]])
    assert torch.allclose(found, expected)
