from __future__ import annotations

import pytest
import torch
from torch import nn

from clearhead.trace.watching.attention_mode import AttentionMode
from clearhead.trace.watching.observed_call import ACTIVE, ObservedCall


@pytest.mark.parametrize("need_weights", [False, True])
def test_calls_inside_multihead_attention_are_observed(
    monkeypatch: pytest.MonkeyPatch, need_weights: bool
) -> None:
    calls: list[ObservedCall] = []
    monkeypatch.setattr(ACTIVE, "collected", calls)
    layer, states = nn.MultiheadAttention(20, 4, batch_first=True), torch.randn(3, 7, 20)
    plain, _ = layer(states, states, states, need_weights=need_weights)
    with AttentionMode() as mode:
        output, _ = layer(states, states, states, need_weights=need_weights)
        assert torch.equal(torch.add(states, 1), states + 1)  # other functions run as they are
    assert torch.equal(plain, output) and mode.unfused.heads is None
    [call] = calls
    assert call.query.shape == (3, 4, 7, 5) and call.fused is not need_weights
