"""A batch: rows of token ids, and the target ids to predict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import torch
from jaxtyping import Int
from torch import Tensor

IGNORED = -100  # a target that does not count

Kind = TypeVar("Kind", bound="Batch")


@dataclass(frozen=True)
class Batch:
    """Rows; ``targets`` holds what follows each token of ``ids``, or IGNORED."""

    ids: Int[Tensor, "row token"]
    targets: Int[Tensor, "row token"]

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.ids.shape[0]

    @property
    def tokens(self) -> int:
        """How many tokens are to be predicted."""
        return int((self.targets != IGNORED).sum())

    def share(self: Kind, number: int, count: int) -> Kind:
        """Every ``count``-th row from row ``number`` on: what one of several processes computes.

        If there are fewer rows than processes, the share is a row with nothing to predict.
        """
        if number < self.rows:
            return self._rows(slice(number, None, count))
        return replace(self._rows(slice(0, 1)), targets=torch.full_like(self.targets[:1], IGNORED))

    def parts(self: Kind, count: int) -> list[Kind]:
        """At most ``count`` runs of rows, about as long as each other."""
        size = -(-self.rows // count)
        return [self._rows(slice(at, at + size)) for at in range(0, self.rows, size)]

    def to(self: Kind, device: torch.device) -> Kind:
        """The same batch on a device."""
        return self._each(lambda tensor: tensor.to(device))

    def _rows(self: Kind, rows: slice) -> Kind:
        return self._each(lambda tensor: tensor[rows])

    def _each(self: Kind, change: Callable[[Tensor], Tensor]) -> Kind:
        held = {field.name: getattr(self, field.name) for field in fields(self)}
        changed: dict[str, Any] = {
            name: None if tensor is None else change(tensor) for name, tensor in held.items()
        }
        return replace(self, **changed)


@dataclass(frozen=True)
class PackedBatch(Batch):
    """Rows cut out of documents that follow each other.

    If a border falls into one of the rows, ``documents`` numbers each token's document, and
    ``positions`` counts from 0 within it.
    """

    documents: Int[Tensor, "row token"] | None = None
    positions: Int[Tensor, "row token"] | None = None


@dataclass(frozen=True)
class PairBatch(Batch):
    """Sources beside what the decoder reads; the first ``source_counts`` ids of each are real."""

    source: Int[Tensor, "row source"]
    source_counts: Int[Tensor, " row"]
