from __future__ import annotations

import pytest
import torch

from clearhead.attention.call import attention_call
from clearhead.attention.steps import attention_steps
from clearhead.explain.interventions import edges


@pytest.mark.parametrize("rows", [512, 4])
@pytest.mark.parametrize("options", [{}, {"causal": True}, {"causal": True, "window": 3}], ids=str)
def test_edges_against_the_plain_steps(
    options: dict[str, int], rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edges, "ROWS", rows)
    query, key, value = (torch.randn(2, heads, 11, 5) for heads in (6, 2, 2))
    bias, sinks = torch.randn(1, 6, 11, 11), torch.randn(6)
    steps = attention_steps(query, key, value, bias=bias, sinks=sinks, **options)  # type: ignore[arg-type]
    causal, window = bool(options.get("causal")), options.get("window")
    call = attention_call(query, key, value, None, bias, causal, window, None, None, sinks)
    for row, head in ((0, 0), (1, 4)):
        found = edges.edge_outputs(call, row, head, [2, 7])
        expected = steps.weighted[row, head][:, [2, 7]].sum(dim=1)
        assert torch.allclose(found, expected, atol=1e-6)


def test_a_mask_of_one_row_and_head() -> None:
    query, key = torch.randn(2, 3, 5, 7), torch.randn(2, 3, 5, 7)
    mask = torch.rand(2, 3, 5, 5) > 0.4
    steps = attention_steps(query, key, key, mask=mask)
    call = attention_call(query, key, key, mask, None, False, None, None, None, None)
    found = edges.edge_outputs(call, 1, 2, range(5))
    assert torch.allclose(found, steps.output[1, 2], atol=1e-6)
