from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from clearhead.trace.watching.attention_mode import AttentionMode
from clearhead.trace.watching.observed_call import ACTIVE, ObservedCall

Scores = Callable[[Tensor, Tensor], Tensor]


@pytest.fixture
def observed(monkeypatch: pytest.MonkeyPatch) -> list[ObservedCall]:
    calls: list[ObservedCall] = []
    monkeypatch.setattr(ACTIVE, "collected", calls)
    return calls


def run(scores: Scores) -> Tensor:
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, 3, n, 11) for n in (5, 7, 7))
    with AttentionMode():
        return torch.softmax(scores(query, key), dim=-1) @ value


def test_scale_bias_and_mask_are_followed(observed: list[ObservedCall]) -> None:
    bias, hidden = torch.arange(7.0), torch.ones(5, 7, dtype=torch.bool).triu(3)
    run(lambda q, k: ((q @ k.mT) / 4 + bias).masked_fill(hidden, -torch.inf))
    [call] = observed
    assert call.scale == 0.25 and call.sizes == (5, 7)
    assert call.bias is not None and torch.equal(call.bias.flatten(), bias)
    assert call.mask is not None and torch.equal(call.mask[0, 0], ~hidden)


def test_an_unknown_step_ends_the_trail(observed: list[ObservedCall]) -> None:
    run(lambda q, k: torch.sin(q @ k.mT))
    assert observed == []


def test_the_same_weights_twice_are_one_call(observed: list[ObservedCall]) -> None:
    states = torch.randn(1, 2, 3, 5)
    with AttentionMode():
        weights = torch.softmax(states @ states.mT, dim=-1)
        weights @ states
        weights @ (states + 1)
    assert [call.repeated for call in observed] == [False, True]
