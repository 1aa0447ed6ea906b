from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from clearhead.trace.watching.doors.happened import PRODUCTS
from clearhead.trace.watching.watch import watch


def parts(states: Tensor) -> tuple[Tensor, Tensor]:
    return states @ states.mT, states


STYLES: dict[str, Callable[[Tensor], Tensor]] = {
    "softmax": lambda scores: torch.softmax(scores, -1),
    "exp": lambda scores: scores.exp() / scores.exp().sum(-1, keepdim=True),
    "difference": lambda scores: torch.softmax(scores, -1) - 0.2 * torch.softmax(2 * scores, -1),
    "mixed heads": lambda scores: torch.softmax(scores, -1).flip(1),
}


@pytest.mark.parametrize("style", STYLES)
def test_attention_is_seen_or_named_whatever_a_module_is_called(style: str) -> None:
    class Zebra(nn.Module):
        def forward(self, states: Tensor) -> Tensor:
            scores, value = parts(states)
            return STYLES[style](scores) @ value

    net, states = nn.Sequential(Zebra()), torch.randn(2, 3, 5, 7)
    plain = net(states)
    with watch(net) as seen:
        watched = net(states)
    assert torch.equal(plain, watched)
    assert seen.missed == "" and seen.verify().exact
    changed = ["changes afterwards" in layer.note for layer in seen.layers]
    assert changed == [style not in ("softmax", "exp")] * (1 + (style == "difference"))


def test_forward_called_directly_is_named() -> None:
    class Zebra(nn.Module):
        def forward(self, states: Tensor) -> Tensor:
            scores, value = parts(states)
            return torch.softmax(scores, -1) @ value

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Zebra()

        def forward(self, states: Tensor) -> Tensor:
            return getattr(self.inner, "for" + "ward")(states)  # type: ignore[no-any-return]

    with watch(net := Outer()) as seen:
        net(torch.randn(2, 3, 5, 7))
    assert seen.layers == [] and "`inner` computes attention by itself" in seen.missed


def test_a_softmax_that_is_no_attention_is_not_named() -> None:
    class Router(nn.Module):
        def forward(self, states: Tensor) -> Tensor:
            return torch.softmax(states, -1).topk(2).values

    with watch(net := nn.Sequential(Router())) as seen:
        net(torch.randn(2, 5, 7))
    assert seen.missed == ""


class Late(nn.Module):
    """Spells attention out from its second forward on, where no code names it."""

    def __init__(self, style: str) -> None:
        super().__init__()
        self.style, self.calls = style, 0

    def forward(self, states: Tensor) -> Tensor:
        self.calls += 1
        if self.calls < 3:
            return states * 2
        scores = states @ states.mT
        if self.style == "softmax":
            weights: Tensor = getattr(torch, "soft" + "max")(scores, -1)
        else:
            weights = getattr(torch, "e" + "xp")(scores)
            weights = weights / weights.sum(dim=-1, keepdim=True)
        return weights @ states


@pytest.mark.parametrize("style", ["softmax", "exp"])
def test_attention_is_named_that_begins_when_products_are_no_longer_counted(style: str) -> None:
    net, states = nn.Sequential(Late(style)), torch.randn(2, 3, 5, 7)
    with watch(net) as seen:
        for _ in range(2):
            net(states)
        assert not PRODUCTS.counted
        net(states)
        assert PRODUCTS.counted
    assert "`0` computes attention by itself" in seen.missed
