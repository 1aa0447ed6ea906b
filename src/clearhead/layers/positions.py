"""Positions that are learned: a vector for each position, or a number for each distance."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from clearhead.attention.relative import relative_bias, relative_buckets
from clearhead.errors import InputError


class LearnedPositions(nn.Module):
    """A learned vector p for each position, added to the embedding: c + p."""

    def __init__(self, length: int, model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(length, model).normal_(std=0.02))

    def forward(
        self, positions: Int[Tensor, "*batch query"]
    ) -> Float[Tensor, "*batch query model"]:
        """The vectors of these positions."""
        known = self.weight.shape[0]
        strange = positions[(positions < 0) | (positions >= known)]
        if strange.numel():
            raise InputError(
                f"position {int(strange[0])}: this model has learned {known} positions, "
                f"0 … {known - 1}.",
                hint="shorten the text.",
            )
        return self.weight[positions]


class RelativeBias(nn.Module):
    """T5's learned number for each bucket of distance and head, added to the scores."""

    def __init__(
        self, heads: int, *, buckets: int = 32, max_distance: int = 128, causal: bool = False
    ) -> None:
        super().__init__()
        self.max_distance, self.causal = max_distance, causal
        self.weight = nn.Parameter(torch.zeros(buckets, heads))

    def forward(
        self, queries: int, keys: int, standing: Int[Tensor, "*batch query"] | None = None
    ) -> Float[Tensor, "*batch head query key"]:
        """The bias of every query and key, the last query aligned to the last key, or standing
        where ``standing`` says."""
        buckets = relative_buckets(
            queries,
            keys,
            buckets=self.weight.shape[0],
            max_distance=self.max_distance,
            causal=self.causal,
            standing=standing,
            device=self.weight.device,
        )
        return relative_bias(self.weight, buckets)
