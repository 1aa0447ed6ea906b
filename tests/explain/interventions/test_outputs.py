"""Outputs are read and changed through hooks, which are gone afterwards."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from clearhead.explain.interventions.outputs import EVERYTHING, Outputs

pytestmark = pytest.mark.usefixtures("one_thread")


def test_heads_are_what_the_module_takes_and_a_layer_is_what_it_returns() -> None:
    linear, states = nn.Linear(6, 3), torch.randn(2, 5, 6)
    kept: list[Tensor] = []
    with Outputs(linear, joined=True).read_by(kept.append):
        linear(states)
    with Outputs(linear, joined=False).read_by(kept.append):
        output = linear(states)
    assert torch.equal(kept[0], states) and torch.equal(kept[1], output)
    linear(states)
    assert len(kept) == 2


def test_some_columns_are_replaced_by_zeros_or_a_vector() -> None:
    linear, states = nn.Linear(6, 3, bias=False), torch.randn(2, 5, 6)
    untouched, instead = states.clone(), torch.arange(6.0)
    with Outputs(linear, joined=True).replaced([slice(2, 4)], instead):
        found = linear(states)
    by_hand = states.clone()
    by_hand[..., 2], by_hand[..., 3] = 2.0, 3.0
    assert torch.equal(found, linear(by_hand)) and torch.equal(states, untouched)
    with Outputs(linear, joined=False).replaced(EVERYTHING, None):
        assert not linear(states).any()


def test_an_error_in_the_block_removes_the_hook() -> None:
    linear = nn.Linear(2, 2)
    with pytest.raises(KeyError), Outputs(linear, joined=True).replaced(EVERYTHING, None):
        raise KeyError
    assert not linear._forward_pre_hooks and not linear._forward_hooks
