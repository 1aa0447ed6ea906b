"""The rows and keys that single calls add to a record, and their concatenation."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from clearhead.trace.row_rules import RowRules


class Parents:
    """The earlier sequence that each sequence of a step continues: beams die and split.

    All layers of a step share one. Keys of deeper layers distinguish more beams, so it is filled
    while the step runs.
    """

    def __init__(self, order: Int[Tensor, " batch"] | None = None) -> None:
        self.order = order


@dataclass(frozen=True)
class Chunk:
    """The part of one call that a record keeps: its rows, and the keys that are new."""

    query: Float[Tensor, "batch head query key_dim"]
    key: Float[Tensor, "batch kv_head new_key key_dim"]
    value: Float[Tensor, "batch kv_head new_key value_dim"] | None
    logsum: Float[Tensor, "batch head query"]
    output: Float[Tensor, "batch head query value_dim"] | None
    piece: RowRules
    parents: Parents | None = None

    @property
    def order(self) -> Int[Tensor, " batch"] | None:
        """The sequence of the chunk before that each one continues; None: each its own."""
        return None if self.parents is None else self.parents.order


def reordered(chunk: Chunk, order: Tensor) -> Chunk:
    """The sequences of a chunk in another order, some perhaps several times."""
    return replace(
        chunk,
        query=chunk.query[order],
        key=chunk.key[order],
        value=None if chunk.value is None else chunk.value[order],
        logsum=chunk.logsum[order],
        output=None if chunk.output is None else chunk.output[order],
    )


def concatenated(chunks: list[Chunk], piece: RowRules) -> Chunk:
    """Consecutive chunks as one."""

    def join(parts: list[Tensor | None]) -> Tensor | None:
        there = [part for part in parts if part is not None]
        return torch.cat(there, dim=2) if len(there) == len(parts) else None

    query, key, logsum = (
        join([getattr(chunk, name) for chunk in chunks]) for name in ("query", "key", "logsum")
    )
    assert query is not None and key is not None and logsum is not None
    value, output = (
        join([getattr(chunk, name) for chunk in chunks]) for name in ("value", "output")
    )
    return Chunk(query, key, value, logsum, output, piece)
