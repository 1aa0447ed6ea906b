"""Normalisation: LayerNorm (Ba et al. 2016) and RMSNorm (Zhang & Sennrich 2019)."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn


class RMSNorm(nn.Module):
    """states / √(mean(states²) + ε) · weight, computed in float32.

    Gemma stores the weight's distance from 1: ``offset=True`` multiplies by 1 + weight.
    """

    def __init__(self, width: int, epsilon: float = 1e-6, *, offset: bool = False) -> None:
        super().__init__()
        self.epsilon, self.offset = epsilon, offset
        self.weight = nn.Parameter(torch.zeros(width) if offset else torch.ones(width))

    def forward(self, states: Float[Tensor, "*batch width"]) -> Float[Tensor, "*batch width"]:
        """Every vector brought to a root mean square of 1, then weighted."""
        wide = states.float() if states.dtype.itemsize < 4 else states
        scaled = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.epsilon)
        weight = 1 + self.weight if self.offset else self.weight
        return (scaled * weight).to(states.dtype)

    def extra_repr(self) -> str:
        """Width and epsilon."""
        return f"{self.weight.shape[0]}, epsilon={self.epsilon}"
