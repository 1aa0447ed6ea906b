from __future__ import annotations

from collections.abc import Callable

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


def test_heads_are_refused_together() -> None:
    """The exponentials of one head sum to 1, those of the other do not: neither is shown."""

    class Head(nn.Module):
        def forward(
            self, states: Tensor, weights: Callable[[Tensor, float], Tensor], shift: float
        ) -> Tensor:
            return weights(states, shift) @ states

    class SelfAttention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.each = nn.ModuleList([Head(), Head()])

        def weights(self, states: Tensor, shift: float) -> Tensor:
            scores = states @ states.mT
            return torch.exp(scores - (torch.logsumexp(scores, -1, keepdim=True) + shift))

        def forward(self, states: Tensor, shift: float) -> Tensor:
            first, second = self.each
            parts = [first(states, self.weights, 0.0), second(states, self.weights, shift)]
            return torch.cat(parts, dim=-1)

    net, states = SelfAttention(), torch.randn(1, 5, 7)
    with watch(net) as seen:
        net(states, 0.0)
    assert [layer.heads for layer in seen.layers] == [2] and seen.missed == ""
    with watch(net) as seen:
        net(states, 0.5)
    assert seen.layers == []
    for path in ("each.0", "each.1"):
        assert f"`{path}` was refused: its weights do not sum to 1" in seen.missed
