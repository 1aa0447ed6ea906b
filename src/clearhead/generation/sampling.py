"""From logits to a token, in pure functions.

Each filter takes logits and returns logits in which what it forbids is −∞; they chain in any
order. :class:`clearhead.generation.settings.Settings` has the order in which we apply them.
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
    """logits / T: below 1 the likely becomes likelier, above 1 all become more alike."""
    return logits if temperature == 1.0 else logits / temperature


def keep_top_k(logits: Float[Tensor, "batch vocab"], count: int) -> Float[Tensor, "batch vocab"]:
    """The ``count`` likeliest tokens (Fan et al. 2018), and those as likely as the last of them."""
    if count >= logits.shape[-1]:
        return logits
    least = logits.topk(count).values[:, -1:]
    return logits.masked_fill(logits < least, FORBIDDEN)


def keep_top_p(logits: Float[Tensor, "batch vocab"], mass: Number) -> Float[Tensor, "batch vocab"]:
    """The fewest likeliest tokens that have this mass together (nucleus, Holtzman et al. 2020)."""
    if mass >= 1.0:
        return logits
    kept = torch.full_like(logits, FORBIDDEN)
    for row, probabilities in enumerate(logits.double().softmax(-1)):
        ids = _nucleus(probabilities, mass)
        kept[row, ids] = logits[row, ids]
    return kept


def _nucleus(probabilities: Float[Tensor, " vocab"], mass: Number) -> Int[Tensor, " kept"]:
    """The ids of the nucleus, likeliest first.

    All tokens below (1 − mass)/vocab have less than 1 − mass together, so that none of them is
    in it: only the others need sorting, and they are few.
    """
    ids = (probabilities > (1.0 - mass) / len(probabilities)).nonzero().flatten()
    ordered, order = probabilities[ids].sort(descending=True, stable=True)
    before = ordered.cumsum(0) - ordered
    return ids[order[before < mass]]


def keep_min_p(logits: Float[Tensor, "batch vocab"], share: Number) -> Float[Tensor, "batch vocab"]:
    """Tokens at least ``share`` times as likely as the likeliest (min-p, Nguyen et al. 2024)."""
    if share == 0.0:
        return logits
    least = logits.amax(-1, keepdim=True) + math.log(share)
    return logits.masked_fill(logits < least, FORBIDDEN)


def keep_typical(
    logits: Float[Tensor, "batch vocab"], mass: Number
) -> Float[Tensor, "batch vocab"]:
    """Tokens whose surprise is nearest to the expected surprise, up to this mass together.

    −log p is a token's surprise, the entropy H what is expected (Meister et al. 2023).
    """
    if mass >= 1.0:
        return logits
    surprise = -logits.log_softmax(-1)
    probabilities = (-surprise).exp()
    expected = torch.where(probabilities > 0, probabilities * surprise, 0.0).sum(-1, keepdim=True)
    distance, order = (surprise - expected).abs().sort(dim=-1)
    reached = probabilities.gather(-1, order).cumsum(-1)
    last = (reached < mass).sum(-1, keepdim=True).clamp(max=logits.shape[-1] - 1)
    too_far = (surprise - expected).abs() > distance.gather(-1, last)
    return logits.masked_fill(too_far, FORBIDDEN)


def likeliest(logits: Float[Tensor, "batch vocab"]) -> list[int]:
    """The greedy choice of each row."""
    return [int(token) for token in logits.argmax(-1)]


def drawn(logits: Float[Tensor, "batch vocab"], uniform: list[float]) -> list[int]:
    """Each row's token drawn from softmax(logits), by a number from [0, 1) for each row.

    The tokens lie side by side on a line of length 1, each as long as it is likely; the number
    says where to point.
    """
    ends = logits.double().softmax(-1).cumsum(-1)
    points = torch.tensor(uniform, dtype=torch.float64)[:, None] * ends[:, -1:]
    return [int(token) for token in torch.searchsorted(ends, points, right=True)[:, 0]]
