"""Products that are written as a multiplication and a sum are named."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from clearhead.trace.watching.doors.unfused.by_hand import BY_HAND
from clearhead.trace.watching.watch import watch


class Mixer(nn.Module):
    """One head, with one or both of its products by hand."""

    def __init__(self, first: bool, second: bool) -> None:
        super().__init__()
        self.first, self.second = first, second

    def forward(self, states: Tensor) -> Tensor:
        wide = states[:, :, None] * states[:, None]  # (batch, query, key, width)
        scores = wide.sum(-1) if self.first else states @ states.transpose(1, 2)
        weights = (scores * 0.3).softmax(dim=-1)
        if self.second:
            return (weights[..., None] * states[:, None]).sum(dim=2)
        return weights @ states


@pytest.mark.parametrize(("first", "second"), [(True, False), (False, True), (True, True)])
def test_a_product_by_hand_is_named(first: bool, second: bool) -> None:
    model = Mixer(first, second)
    with watch(model) as seen:
        model(torch.randn(2, 5, 7))
    assert BY_HAND in seen.missed and not seen.records


def test_a_router_is_no_attention() -> None:
    """Experts that are weighed: no product of queries and keys."""

    class Router(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate = nn.Linear(7, 3)

        def forward(self, states: Tensor) -> Tensor:
            shares: Tensor = self.gate(states).softmax(dim=-1)
            return (shares[..., None] * states[:, :, None]).sum(dim=2)

    model = Router()
    with watch(model) as seen:
        model(torch.randn(2, 5, 7))
    assert seen.missed == "" and not seen.records
