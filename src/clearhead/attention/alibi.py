"""Position as a slope (ALiBi, Press et al. 2022): a key's score falls with its distance."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from clearhead.errors import InputError


def alibi_slopes(heads: int) -> Float[Tensor, " head"]:
    """One slope for each head, 2^(−8/n), 2^(−16/n) …; in between for n that is no power of two."""
    if heads < 1:
        raise InputError(f"heads must be 1 or more; got {heads}.")
    power = 2 ** math.floor(math.log2(heads))
    slopes = [2 ** (-8 * (i + 1) / power) for i in range(power)]
    slopes += [2 ** (-4 * (2 * i + 1) / power) for i in range(heads - power)]
    return torch.tensor(slopes)


def alibi_bias(
    slopes: Float[Tensor, " head"], queries: int, keys: int
) -> Float[Tensor, "head {queries} {keys}"]:
    """−slope · distance, with the last query aligned to the last key.

    Softmax ignores what is the same for a whole row, so for causal attention one row
    (``queries=1``) says the same as all of them and needs no memory for the whole map.
    """
    standing = torch.arange(queries, device=slopes.device)[:, None] + keys - queries
    distance = (standing - torch.arange(keys, device=slopes.device)).abs()
    return -slopes[:, None, None] * distance
