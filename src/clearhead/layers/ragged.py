"""Rows of different lengths without their padding, for layers that take each position by itself.

Projections, normalisation and feed-forward layers then compute real tokens only; attention, which
needs rows, gets them padded again. A batch of sentences is a third padding more often than not.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

WORTHWHILE = 0.95  # of the places filled: above it, moving states about costs more than it saves


class Ragged:
    """The places of the real tokens in rows (batch, query) that are padded at the end."""

    def __init__(self, counts: Int[Tensor, " batch"], width: int) -> None:
        self.batch, self.width = len(counts), width
        real = torch.arange(width, device=counts.device) < counts[:, None]
        self.places = real.flatten().nonzero().flatten()

    @classmethod
    def of(cls, counts: Int[Tensor, " batch"] | None, width: int) -> Ragged | None:
        """For rows with so many real tokens; None where nearly all are real."""
        if counts is None or int(counts.sum()) > WORTHWHILE * len(counts) * width:
            return None
        return cls(counts, width)

    def unpad(self, states: Float[Tensor, "batch query width"]) -> Float[Tensor, "1 real width"]:
        """The real tokens, one after the other, without padding."""
        return states.flatten(0, 1).index_select(0, self.places)[None]

    def pad(self, states: Float[Tensor, "1 real width"]) -> Float[Tensor, "batch query width"]:
        """Back into rows, with zeros for padding."""
        rows = states.new_zeros(self.batch * self.width, states.shape[2])
        return rows.index_copy(0, self.places, states[0]).view(self.batch, self.width, -1)
