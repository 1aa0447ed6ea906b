from __future__ import annotations

import torch
from torch import Tensor, nn

from clearhead.trace.watching.watch import watch


def test_sequences_computed_one_by_one_are_no_heads() -> None:
    class Looped(nn.Module):
        def forward(self, states: Tensor) -> Tensor:
            return torch.stack([torch.softmax(one @ one.mT, dim=-1) @ one for one in states])

    with watch(net := Looped()) as seen:
        net(torch.randn(3, 1, 5, 7))
    assert seen.layers == [] and "nothing tells its heads from its sequences" in seen.missed


def test_the_same_weights_twice_are_one_call() -> None:
    class Twice(nn.Module):
        def forward(self, states: Tensor) -> Tensor:
            weights = torch.softmax(states @ states.mT, dim=-1)
            return weights @ states + weights @ (states + 1)

    with watch(net := Twice()) as seen:
        net(torch.randn(1, 2, 3, 5))
    assert len(seen.layers) == 1 and seen.missed == ""
