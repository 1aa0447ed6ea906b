"""Layouts: on which axes heads, sequences, queries and keys stand, and how they are multiplied.

The canonical axes are (batch, head, query or key, width). A layout takes them apart, multiplies,
and puts the result together again.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

WINDOWS = 2


class Layout:
    """One way to arrange the axes of attention."""

    def __init__(
        self, name: str, product: str, batch: int, heads: int, kv_heads: int, head: int = 0
    ) -> None:
        self.name, self.product, self.head = name, product, head
        self.batch, self.heads, self.kv_heads = batch, heads, kv_heads

    def arranged(self, part: Tensor) -> Tensor:
        """Queries, or scores, from canonical axes to the layout's own."""
        batch, heads, length, width = part.shape
        match self.name:
            case "(b h) n d":
                return part.reshape(batch * heads, length, width)
            case "(h b) n d":
                return part.transpose(0, 1).reshape(batch * heads, length, width)
            case "n (b h) d":
                return part.permute(2, 0, 1, 3).reshape(length, -1, width).transpose(0, 1)
            case "b (n h) d":
                return part.permute(0, 2, 1, 3).reshape(batch, length * heads, width)
            case "b (h n) d":
                return part.reshape(batch, heads * length, width)
            case "windows":
                return torch.unflatten(part, 0, (-1, WINDOWS))
            case "grouped 5-D":
                return torch.unflatten(part, 1, (self.kv_heads, -1))
        return part

    def query(self, part: Tensor) -> Tensor:
        """Queries in this layout."""
        return part.transpose(1, 2) if self.name.startswith("b n h d") else self.arranged(part)

    def key(self, part: Tensor, *, grouped: bool = False) -> Tensor:
        """Keys or values in this layout; ``grouped`` leaves them to be shared by their heads."""
        if self.name.startswith("b n h d"):
            return part.transpose(1, 2)
        if self.name in ("b (n h) d", "b (h n) d"):
            return part[:, 0]
        if self.name == "grouped 5-D":
            return part[:, :, None].expand(-1, -1, self.heads // self.kv_heads, -1, -1)
        if self.name == "grouped" and not grouped:
            return part.repeat_interleave(self.heads // self.kv_heads, dim=1)
        return self.arranged(part)

    def spread(self, part: Tensor, axes: int = 4, rows: int = 1) -> Tensor:
        """Something with the axes of canonical scores, some of them 1, ready to be broadcast."""
        if self.name in ("b (n h) d", "b (h n) d"):
            part = part.expand(-1, self.heads, rows, -1)
            return self.arranged(part)
        if self.name == "one module per head":
            part = part[:, self.head : self.head + 1] if part.shape[1] > 1 else part
        if axes == 2 and part.shape[:2] == (1, 1):
            return part[0, 0]
        if self.name == "one module per head":
            return part[:, 0]
        if self.name in ("(b h) n d", "(h b) n d", "n (b h) d"):
            if part.shape[:2] == (1, 1):
                return part[0]
            return self.arranged(part.expand(self.batch, self.heads, -1, -1))
        if self.name == "windows":
            return part[None] if part.shape[0] == 1 else self.arranged(part)
        if self.name == "grouped 5-D":
            return part[:, :, None] if part.shape[1] == 1 else self.arranged(part)
        if self.name == "b n h d → h b":
            return part.transpose(0, 1)
        return part[0] if axes == 3 and part.shape[0] == 1 else part

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        """query · key."""
        if self.product == "einsum":
            return torch.einsum(self._scores_rule(query), query, key)
        if self.product == "einsum …":
            return torch.einsum("...qd,...kd->...qk", query, key)
        if self.product == "keys first":
            return (key @ query.transpose(-1, -2)).transpose(-1, -2)
        return self._multiply()(query, key.transpose(-1, -2))

    def mixed(self, weights: Tensor, value: Tensor) -> Tensor:
        """weights · value."""
        if self.product == "einsum":
            return torch.einsum(self._output_rule(weights), weights, value)
        if self.product == "einsum …":
            return torch.einsum("...qk,...kd->...qd", weights, value)
        if self.product == "values first":
            return (value.transpose(-1, -2) @ weights.transpose(-1, -2)).transpose(-1, -2)
        return self._multiply()(weights, value)

    def canonical(self, part: Tensor) -> Tensor:
        """Scores, weights or fused output back on canonical axes."""
        match self.name:
            case "(b h) n d" | "n (b h) d":
                return part.view(self.batch, self.heads, *part.shape[1:])
            case "(h b) n d":
                return part.view(self.heads, self.batch, *part.shape[1:]).transpose(0, 1)
            case "b (n h) d":
                return torch.unflatten(part, 1, (-1, self.heads)).transpose(1, 2)
            case "b (h n) d":
                return torch.unflatten(part, 1, (self.heads, -1))
            case "windows":
                return part.flatten(0, 1)
            case "grouped 5-D":
                return part.flatten(1, 2)
            case "b n h d → h b":
                return part.transpose(0, 1)
        return part

    def canonical_output(self, part: Tensor) -> Tensor:
        """The output of the second product back on canonical axes."""
        return part.transpose(1, 2) if self.name.startswith("b n h d") else self.canonical(part)

    def _multiply(self) -> Callable[[Tensor, Tensor], Tensor]:
        if self.product in ("bmm", "baddbmm"):
            return torch.bmm
        return torch.matmul if self.product == "matmul" else lambda left, right: left @ right

    def _scores_rule(self, query: Tensor) -> str:
        if self.name == "b n h d → h b":
            return "bqhd,bkhd->hbqk"
        if self.name == "b n h d":
            return "bqhd,bkhd->bhqk"
        return "bqd,bkd->bqk" if query.ndim == 3 else "bhqd,bhkd->bhqk"

    def _output_rule(self, weights: Tensor) -> str:
        if self.name == "b n h d → h b":
            return "hbqk,bkhd->bqhd"
        if self.name == "b n h d":
            return "bhqk,bkhd->bqhd"
        return "bqk,bkd->bqd" if weights.ndim == 3 else "bhqk,bhkd->bhqd"
