"""Sampling: pure functions from logits to a token.

Each filter takes logits and returns logits in which the forbidden tokens are −∞. Filters can be
combined in any order. :class:`clearhead.generation.settings.Settings` defines our order.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

Number: TypeAlias = int | float
FORBIDDEN = -math.inf


def with_temperature(
    logits: Float[Tensor, "batch vocab"], temperature: Number
) -> Float[Tensor, "batch vocab"]:
    """Divide by T: below 1 sharpens the distribution, above 1 flattens it."""
    return logits if temperature == 1.0 else logits / temperature


def keep_top_k(logits: Float[Tensor, "batch vocab"], count: int) -> Float[Tensor, "batch vocab"]:
    """Keep the ``count`` most likely tokens (Fan et al. 2018), and ties with the last of them."""
    if count >= logits.shape[-1]:
        return logits
    threshold = logits.topk(count).values[:, -1:]
    return logits.masked_fill(logits < threshold, FORBIDDEN)


def keep_top_p(logits: Float[Tensor, "batch vocab"], mass: Number) -> Float[Tensor, "batch vocab"]:
    """Keep the fewest tokens that sum to this probability (nucleus, Holtzman et al. 2020)."""
    if mass >= 1.0:
        return logits
    kept = torch.full_like(logits, FORBIDDEN)
    for row, probabilities in enumerate(logits.double().softmax(-1)):
        ids = _nucleus(probabilities, mass)
        kept[row, ids] = logits[row, ids]
    return kept


def _nucleus(probabilities: Float[Tensor, " vocab"], mass: Number) -> Int[Tensor, " kept"]:
    """Return the ids of the nucleus, most likely first.

    All tokens below (1 − mass)/vocab sum to less than 1 − mass, so none of them is in it. Only
    the others need sorting, and they are few.
    """
    ids = (probabilities > (1.0 - mass) / len(probabilities)).nonzero().flatten()
    ordered, order = probabilities[ids].sort(descending=True, stable=True)
    before = ordered.cumsum(0) - ordered
    return ids[order[before < mass]]


def keep_min_p(logits: Float[Tensor, "batch vocab"], ratio: Number) -> Float[Tensor, "batch vocab"]:
    """Keep tokens with at least ``ratio`` × the highest probability (min-p, Nguyen et al. 2024)."""
    if ratio == 0.0:
        return logits
    threshold = logits.amax(-1, keepdim=True) + math.log(ratio)
    return logits.masked_fill(logits < threshold, FORBIDDEN)


def keep_typical(
    logits: Float[Tensor, "batch vocab"], mass: Number
) -> Float[Tensor, "batch vocab"]:
    """Keep tokens whose surprisal is nearest to the entropy, up to ``mass`` of probability.

    The surprisal of a token is −log p; its expectation is the entropy (Meister et al. 2023).
    """
    if mass >= 1.0:
        return logits
    surprisal = -logits.log_softmax(-1)
    probabilities = (-surprisal).exp()
    entropy = torch.where(probabilities > 0, probabilities * surprisal, 0.0).sum(-1, keepdim=True)
    distance, order = (surprisal - entropy).abs().sort(dim=-1)
    reached = probabilities.gather(-1, order).cumsum(-1)
    last = (reached < mass).sum(-1, keepdim=True).clamp(max=logits.shape[-1] - 1)
    too_far = (surprisal - entropy).abs() > distance.gather(-1, last)
    return logits.masked_fill(too_far, FORBIDDEN)


def greedy(logits: Float[Tensor, "batch vocab"]) -> list[int]:
    """Return the most likely token of each row."""
    return [int(token) for token in logits.argmax(-1)]


def sample(logits: Float[Tensor, "batch vocab"], uniform: list[float]) -> list[int]:
    """Sample a token for each row from softmax(logits), with a uniform number in [0, 1) for each.

    This is inverse transform sampling: the token at which the cumulative sum passes the number.
    """
    ends = logits.double().softmax(-1).cumsum(-1)
    points = torch.tensor(uniform, dtype=torch.float64)[:, None] * ends[:, -1:]
    return [int(token) for token in torch.searchsorted(ends, points, right=True)[:, 0]]
