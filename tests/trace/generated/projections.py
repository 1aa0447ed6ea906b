"""What modules do to queries and keys beside projecting them."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def rotated(part: Tensor) -> Tensor:
    """Rotary positions on the first four of the width."""
    angles = torch.arange(part.shape[2])[:, None] * torch.tensor([1.0, 0.1])
    cosine, sine = angles.cos().to(part.dtype), angles.sin().to(part.dtype)
    if part.shape[3] < 4:
        return part
    left, right, rest = part[..., :2], part[..., 2:4], part[..., 4:]
    return torch.cat([left * cosine - right * sine, right * cosine + left * sine, rest], dim=-1)


def enlarge(module: nn.Module, factor: float) -> None:
    """Weights that make scores of an interesting size."""
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if name.startswith(("qkv", "to_q", "to_k", "to_v")):
                parameter.mul_(factor)
