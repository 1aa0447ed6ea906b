"""The keys that a query attends to most."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from clearhead.arguments import whole_number
from clearhead.trace.passage import Passage


@dataclass(frozen=True, slots=True)
class TopKey:
    """A key that a query attends to: where it is, how much, and its token if known."""

    position: int
    weight: float
    token: str | None


def top_keys(
    weights: Float[Tensor, "head key"], count: int, passage: Passage | None
) -> list[list[TopKey]]:
    """For each head the ``count`` largest weights, the largest first."""
    count = whole_number("count (of the top keys)", count, least=1)
    values, positions = weights.topk(min(count, weights.shape[-1]))
    return [
        [
            TopKey(place, value, None if passage is None else passage.tokens[place].text)
            for value, place in zip(row_values, row_positions, strict=True)
        ]
        for row_values, row_positions in zip(values.tolist(), positions.tolist(), strict=True)
    ]
