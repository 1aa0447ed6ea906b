"""The sizes of a generated model, and what one call of its attention multiplied."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from tests.trace.generated.layouts import WINDOWS
from tests.trace.generated.masks import Mask
from tests.trace.generated.spec import Spec


@dataclass(frozen=True)
class Sizes:
    """How many there are of everything."""

    batch: int
    heads: int
    kv_heads: int
    queries: int
    keys: int
    width: int
    value_width: int

    @classmethod
    def of(cls, spec: Spec) -> Sizes:
        """Different primes, or all alike: then no size tells one axis from another."""
        equal = spec.sizes == "equal"
        batch = spec.batch * (WINDOWS if spec.layout == "windows" else 1)
        heads = max(2, batch) if equal else 3
        kv_heads = 1 if spec.layout in ("b (n h) d", "b (h n) d") else heads
        if spec.layout.startswith("grouped"):
            heads, kv_heads = (4, 2) if equal else (6, 2)
        width = heads if equal else 5
        queries = heads if equal else 7
        keys = queries if equal or spec.kind == "self" else 13
        value_width = 2 if spec.value_width == "other" else width
        return cls(batch, heads, kv_heads, queries, keys, width, value_width)


@dataclass(frozen=True)
class Entry:
    """What one call of an attention module multiplied, on canonical axes, for the reference."""

    query: Tensor  # scaled already, where the module scales it
    key: Tensor
    value: Tensor
    scale: float  # of the scores
    mask: Mask | None
    output: Tensor | None = None  # before the output projection
    weights: Tensor | None = None  # where the module has them
    softmaxes: tuple[Tensor, ...] = ()  # that it combined into the weights afterwards


def taken_down(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scale: float,
    mask: Mask | None,
    output: Tensor,
    weights: Tensor | None,
    *softmaxes: Tensor,
) -> Entry:
    """A copy, which nothing that is written later can change."""
    kept = [part.detach().clone() for part in (query, key, value, output)]
    own = None if weights is None else weights.detach().clone()
    before = tuple(part.detach().clone() for part in softmaxes)
    return Entry(kept[0], kept[1], kept[2], scale, mask, kept[3], own, before)
