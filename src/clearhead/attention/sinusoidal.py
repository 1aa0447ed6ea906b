"""Position as waves, added to the embeddings (Vaswani et al. 2017, section 3.5).

p(position, 2i)     = sin(position / base^(2i/width))
p(position, 2i + 1) = cos(position / base^(2i/width))
"""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from clearhead.errors import InputError


def sinusoidal_positions(
    positions: int | Int[Tensor, "*batch query"],
    width: int,
    *,
    base: float = 10_000.0,
    layout: Literal["interleaved", "halves"] = "interleaved",
) -> Float[Tensor, "*batch query {width}"]:
    """The wave vector of each position; an int asks for positions 0 … n − 1.

    ``interleaved`` is the paper's order (sin, cos, sin, cos …); ``halves`` puts all sines first
    (tensor2tensor, Marian).
    """
    if width < 2 or width % 2:
        raise InputError(
            f"sinusoidal positions come in sin/cos pairs; width must be even; got {width}."
        )
    if isinstance(positions, int):
        positions = torch.arange(positions)
    pair = torch.arange(0, width, 2, device=positions.device, dtype=torch.float64)
    angle = positions[..., None] * base ** (-pair / width)  # (…, query, width / 2)
    waves = torch.stack([angle.sin(), angle.cos()], dim=-1 if layout == "interleaved" else -2)
    return waves.flatten(-2).to(torch.get_default_dtype())
