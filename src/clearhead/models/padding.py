"""Rows of different lengths in one batch: each row is packed to the front, whatever its padding.

A packed row sees what it would see alone: its positions start at 0, and a causal model needs no
mask for padding that comes after everything real.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from clearhead.errors import InputError
from clearhead.tensors import token_flags


@dataclass(frozen=True)
class Padding:
    """How many tokens of each row are real, and where they came from if they were moved."""

    counts: Int[Tensor, " batch"]
    order: Int[Tensor, "batch query"] | None
    width: int  # of the rows as they came; packed ones are as wide as the longest

    @classmethod
    def of(
        cls, real: Bool[Tensor, "batch query"] | None, ids: Int[Tensor, "batch query"]
    ) -> Padding | None:
        """From flags (True = a real token); None where every token is real."""
        if real is None:
            return None
        token_flags("real", real, ids)
        if bool(real.all()):
            return None
        counts = real.sum(dim=1)
        if int(counts.min()) == 0:
            empty = (counts == 0).nonzero().flatten().tolist()
            raise InputError(
                f"every row needs at least one real token; rows {empty} of real have none."
            )
        in_front = bool((real.long().diff(dim=1) <= 0).all())
        order = None if in_front else torch.argsort(~real, dim=1, stable=True)
        return cls(counts, order, real.shape[1])

    def pack(self, ids: Int[Tensor, "batch query"]) -> Int[Tensor, "batch longest"]:
        """The row's real tokens first; columns without any are left out."""
        packed = ids if self.order is None else ids.gather(1, self.order)
        return packed[:, : int(self.counts.max())]

    def unpack(
        self, states: Float[Tensor, "batch longest width"]
    ) -> Float[Tensor, "batch query width"]:
        """Move states back to the tokens' own places; padding gets zeros or meaningless states."""
        batch, longest, width = states.shape
        whole = states.new_zeros(batch, self.width, width)
        if self.order is None:
            whole[:, :longest] = states
            return whole
        return whole.scatter(1, self.order[:, :longest, None].expand_as(states), states)

    def last(self, states: Float[Tensor, "batch query width"]) -> Float[Tensor, "batch 1 width"]:
        """The states of each row's last real token (of packed states)."""
        return states[torch.arange(len(states)), self.counts - 1][:, None]
