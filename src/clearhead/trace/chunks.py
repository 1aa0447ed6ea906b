"""The rows and keys that single calls add to a record, and their concatenation."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from clearhead.trace.row_rules import RowRules

TENSORS = ("query", "key", "value", "logsum", "output", "value_probe", "output_probe")
PER_KEY = ("key", "value", "value_probe")  # the others have a row axis


class Parents:
    """The earlier sequence that each sequence of a step continues: beams die and split.

    All layers of a step share one. Keys of deeper layers distinguish more beams, so it is filled
    while the step runs.
    """

    def __init__(self, order: Int[Tensor, " batch"] | None = None) -> None:
        self.order = order


class LaterSums:
    """Log-sum-exps that nobody has asked for yet. They follow from queries, keys and rules."""

    def __init__(self, shape: tuple[int, ...], compute: Callable[[], Tensor]) -> None:
        self.shape = shape
        self._compute: Callable[[], Tensor] | None = compute
        self._known: Tensor | None = None

    def tensor(self) -> Float[Tensor, "batch head query"]:
        """Compute them once."""
        if self._known is None:
            assert self._compute is not None
            self._known, self._compute = self._compute(), None
        return self._known

    @property
    def nbytes(self) -> int:
        """What they take, or will: float32."""
        return 4 * math.prod(self.shape) if self._known is None else self._known.nbytes


@dataclass(frozen=True)
class Chunk:
    """The part of one call that a record keeps: its rows, and the keys that are new."""

    query: Float[Tensor, "batch head query key_dim"]
    key: Float[Tensor, "batch kv_head new_key key_dim"]
    value: Float[Tensor, "batch kv_head new_key value_dim"] | None
    sums: Float[Tensor, "batch head query"] | LaterSums
    output: Float[Tensor, "batch head query value_dim"] | None
    piece: RowRules
    parents: Parents | None = None
    value_probe: Float[Tensor, "batch kv_head new_key probe"] | None = None
    output_probe: Float[Tensor, "batch head query probe"] | None = None

    @property
    def logsum(self) -> Float[Tensor, "batch head query"]:
        """The log-sum-exp of each row."""
        return self.sums.tensor() if isinstance(self.sums, LaterSums) else self.sums

    @property
    def nbytes(self) -> int:
        """Memory of all tensors but the masks."""
        parts = (self.sums if name == "logsum" else getattr(self, name) for name in TENSORS)
        return sum(part.nbytes for part in parts if part is not None)

    def changed(self, **tensors: Any) -> Chunk:
        """The same chunk with some tensors instead of its own, by the names of ``TENSORS``."""
        if "logsum" in tensors:
            tensors["sums"] = tensors.pop("logsum")
        return replace(self, **tensors)

    @property
    def order(self) -> Int[Tensor, " batch"] | None:
        """The sequence of the chunk before that each one continues; None: each its own."""
        return None if self.parents is None else self.parents.order


def reordered(chunk: Chunk, order: Tensor) -> Chunk:
    """The sequences of a chunk in another order, some perhaps several times."""
    parts: dict[str, Any] = {name: getattr(chunk, name) for name in TENSORS}
    taken: dict[str, Any] = {
        name: None if part is None else part[order] for name, part in parts.items()
    }
    return chunk.changed(**taken)


def concatenated(chunks: list[Chunk], piece: RowRules) -> Chunk:
    """Consecutive chunks as one."""

    def join(parts: list[Tensor | None]) -> Tensor | None:
        there = [part for part in parts if part is not None]
        return torch.cat(there, dim=2) if len(there) == len(parts) else None

    parts: dict[str, Any] = {
        name: join([getattr(chunk, name) for chunk in chunks]) for name in TENSORS
    }
    return Chunk(sums=parts.pop("logsum"), **parts, piece=piece)
