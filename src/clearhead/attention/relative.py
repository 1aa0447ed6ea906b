"""Position as learned buckets of distance (T5, Raffel et al. 2020).

Near distances have a bucket each, far ones share buckets that grow logarithmically, and all beyond
``max_distance`` share the last. Each head learns one number for each bucket, added to its scores.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from clearhead.errors import ConfigError


def relative_buckets(
    queries: int,
    keys: int,
    *,
    buckets: int = 32,
    max_distance: int = 128,
    causal: bool = False,
    standing: Int[Tensor, "*batch {queries}"] | None = None,
    device: torch.device | str = "cpu",
) -> Int[Tensor, "*batch {queries} {keys}"]:
    """The bucket of each key as seen from each query, the last query aligned to the last key.

    ``standing`` says where the queries stand instead. Not causal: half of the buckets are for keys
    behind, half for keys ahead.
    """
    if buckets < 4 or max_distance <= buckets // (2 if causal else 4):
        raise ConfigError(
            "relative positions need at least 4 buckets and a max_distance beyond the exact ones; "
            f"got buckets={buckets}, max_distance={max_distance}."
        )
    if standing is None:
        standing = torch.arange(keys - queries, keys)
    ahead = torch.arange(keys, device=device) - standing.to(device)[..., None]  # (…, query, key)
    if causal:
        return _bucket(-ahead.clamp(max=0), buckets, max_distance)
    half = buckets // 2
    return (ahead > 0) * half + _bucket(ahead.abs(), half, max_distance)


def relative_bias(
    table: Float[Tensor, "bucket head"], buckets: Int[Tensor, "*batch query key"]
) -> Float[Tensor, "*batch head query key"]:
    """The learned number of each bucket, for each head."""
    return table[buckets].movedim(-1, -3)


def _bucket(distance: Tensor, buckets: int, max_distance: int) -> Tensor:
    """Exact up to half of the buckets, then logarithmic up to max_distance."""
    exact = buckets // 2
    growth = math.log(max_distance / exact)
    far = exact + ((distance / exact).clamp(min=1).log() / growth * (buckets - exact)).long()
    return torch.where(distance < exact, distance, far.clamp(max=buckets - 1))
