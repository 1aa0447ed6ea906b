"""LoRA: a linear map that stays as it is, plus a product of two narrow matrices that is learned.

    y = x·Wᵀ + b + scale · (x·Aᵀ)·Bᵀ      A: rank × in, B: out × rank (Hu et al. 2021)

B begins as zeros, so the sum begins as the map that it adapts.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from clearhead.arguments import real_number, whole_number
from clearhead.errors import ConfigError
from clearhead.layers.dropout import drop
from clearhead.layers.linear import Linear

WIDEST = 1 << 16  # ranks beyond any use


class LowRankLinear(Linear):
    """A linear map with an adapter; ``weight`` and ``bias`` are those of the map that it adapts.

    Args:
        base: the map; its parameters are taken over, not copied.
        rank: width of the two matrices of the adapter.
        alpha: the adapter is multiplied with alpha / rank.
        dropout: share of the adapter's inputs that is dropped in training.

    Raises:
        ConfigError: a number is out of range.

    >>> base = Linear(7, 5)
    >>> adapted = LowRankLinear(base, rank=2, alpha=4.0)
    >>> states = torch.randn(3, 7)
    >>> torch.equal(adapted(states), base(states))  # B is 0 in the beginning
    True
    """

    def __init__(self, base: Linear, *, rank: int, alpha: float, dropout: float = 0.0) -> None:
        nn.Module.__init__(self)
        self.rank = whole_number("rank", rank, least=1, most=WIDEST, error=ConfigError)
        self.alpha = real_number("alpha", alpha, error=ConfigError)
        self.dropout = real_number("dropout", dropout, least=0, error=ConfigError)
        self.in_features, self.out_features = base.in_features, base.out_features
        self.weight, self.bias = base.weight, base.bias
        device = base.weight.device
        self.low_rank_a = nn.Parameter(torch.empty(rank, base.in_features, device=device))
        self.low_rank_b = nn.Parameter(torch.zeros(base.out_features, rank, device=device))
        nn.init.kaiming_uniform_(self.low_rank_a, a=math.sqrt(5))  # as PEFT does

    @property
    def scale(self) -> float:
        """What the product of the two matrices is multiplied with."""
        return self.alpha / self.rank

    def forward(self, input: Float[Tensor, "*batch in"]) -> Float[Tensor, "*batch out"]:
        """The map and its adapter."""
        narrow = functional.linear(drop(input, self.dropout, self.training), self.low_rank_a)
        return super().forward(input) + self.scale * functional.linear(narrow, self.low_rank_b)

    def extra_repr(self) -> str:
        """Widths, rank and scale."""
        return f"{super().extra_repr()}, rank={self.rank}, scale={self.scale:g}"
