"""Penalties for repeated tokens, and logit bias: pure functions of logits and token counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from clearhead.generation.sampling import Number


def token_counts(rows: Sequence[Sequence[int]], vocab: int) -> Int[Tensor, "batch {vocab}"]:
    """Count each token of the vocabulary in each row; other tokens are not counted."""
    counted = (
        torch.bincount(torch.tensor(row, dtype=torch.int64), minlength=vocab) for row in rows
    )
    return torch.stack([counts[:vocab] for counts in counted])


def with_repetition_penalty(
    logits: Float[Tensor, "batch vocab"], counts: Int[Tensor, "batch vocab"], penalty: Number
) -> Float[Tensor, "batch vocab"]:
    """Divide the positive logits of repeated tokens by the penalty, multiply the negative ones.

    A penalty above 1 discourages repetition (Keskar et al. 2019). ``counts`` are of prompt and
    text.
    """
    lowered = torch.where(logits < 0, logits * penalty, logits / penalty)
    return torch.where(counts > 0, lowered, logits)


def with_presence_and_frequency(
    logits: Float[Tensor, "batch vocab"],
    counts: Int[Tensor, "batch vocab"],
    presence: Number,
    frequency: Number,
) -> Float[Tensor, "batch vocab"]:
    """Return logits − presence·[count > 0] − frequency·count, as OpenAI defines them.

    ``counts`` are of the generated text alone.
    """
    numbers = counts.to(logits.dtype)  # whole ones would make the products float32
    return logits - presence * (numbers > 0).to(logits.dtype) - frequency * numbers


def with_bias(
    logits: Float[Tensor, "batch vocab"], bias: Mapping[int, Number]
) -> Float[Tensor, "batch vocab"]:
    """Add a number to the logits of single tokens; −∞ forbids a token."""
    changed = logits.clone()
    changed[:, list(bias)] += torch.tensor(list(bias.values()), dtype=logits.dtype)
    return changed
