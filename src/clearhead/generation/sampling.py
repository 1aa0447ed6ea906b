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
EXTREME = 1e-30  # temperatures below it, or above its inverse, may not fit into float32


def with_temperature(
    logits: Float[Tensor, "batch vocab"], temperature: Number
) -> Float[Tensor, "batch vocab"]:
    """Divide by T: below 1 sharpens the distribution, above 1 flattens it.

    The largest logit is subtracted first, so that no T overflows: a tiny one leaves the most likely
    token, a huge one makes all tokens alike that are not forbidden.
    """
    if temperature == 1.0:
        return logits
    shifted = logits - logits.amax(-1, keepdim=True)
    if EXTREME < temperature < 1 / EXTREME:
        return shifted / temperature
    return (shifted.double() / temperature).to(logits.dtype)  # float32 cannot hold such a T


def keep_top_k(logits: Float[Tensor, "batch vocab"], count: int) -> Float[Tensor, "batch vocab"]:
    """Keep the ``count`` most likely tokens (Fan et al. 2018), and ties with the last of them."""
    if count >= logits.shape[-1]:
        return logits
    threshold = logits.topk(count).values[:, -1:]
    return logits.masked_fill(logits < threshold, FORBIDDEN)


def keep_top_p(
    logits: Float[Tensor, "batch vocab"], mass: Number, least: int = 1
) -> Float[Tensor, "batch vocab"]:
    """Keep the fewest tokens that sum to this probability (nucleus, Holtzman et al. 2020).

    ``least`` is the smallest number of tokens that this and the following filters keep.
    """
    if mass >= 1.0:
        return logits
    kept = torch.full_like(logits, FORBIDDEN)
    for row, probabilities in enumerate(logits.double().softmax(-1)):
        ids = _nucleus(probabilities, mass, least)
        kept[row, ids] = logits[row, ids]
    return kept


def _nucleus(
    probabilities: Float[Tensor, " vocab"], mass: Number, least: int
) -> Int[Tensor, " kept"]:
    """Return the ids of the nucleus, most likely first.

    All tokens below (1 − mass)/vocab sum to less than 1 − mass, so none of them is in it. Only
    the others need sorting, and they are few.
    """
    ids = (probabilities > (1.0 - mass) / len(probabilities)).nonzero().flatten()
    if len(ids) < least:  # more are wanted; or all are alike, and 1 − mass rounds to 1
        ids = torch.arange(len(probabilities))
    ordered, order = probabilities[ids].sort(descending=True, stable=True)
    before = ordered.cumsum(0) - ordered
    count = max(int((before < mass).sum()), least)
    return ids[order[:count]]


def keep_min_p(
    logits: Float[Tensor, "batch vocab"], ratio: Number, least: int = 1
) -> Float[Tensor, "batch vocab"]:
    """Keep tokens with at least ``ratio`` × the highest probability (min-p, Nguyen et al. 2024)."""
    if ratio == 0.0:
        return logits
    threshold = logits.amax(-1, keepdim=True) + math.log(ratio)
    if least > 1:
        threshold = threshold.minimum(logits.topk(min(least, logits.shape[-1])).values[:, -1:])
    return logits.masked_fill(logits < threshold, FORBIDDEN)


def keep_typical(
    logits: Float[Tensor, "batch vocab"], mass: Number, least: int = 1
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
    last = (reached < mass).sum(-1, keepdim=True)
    fewest, most = min(least, logits.shape[-1]) - 1, logits.shape[-1] - 1
    last = last.clamp(min=fewest, max=most)
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
