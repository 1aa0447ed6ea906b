"""Penalties for what the text has already, in pure functions of logits and counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from clearhead.generation.sampling import Number


def token_counts(rows: Sequence[Sequence[int]], vocab: int) -> Int[Tensor, "batch {vocab}"]:
    """How often each token of the vocabulary occurs in each row; others are not counted."""
    counted = (
        torch.bincount(torch.tensor(row, dtype=torch.int64), minlength=vocab) for row in rows
    )
    return torch.stack([counts[:vocab] for counts in counted])


def with_repetition_penalty(
    logits: Float[Tensor, "batch vocab"], counts: Int[Tensor, "batch vocab"], penalty: Number
) -> Float[Tensor, "batch vocab"]:
    """Logits of tokens seen before divided by the penalty, multiplied where they are negative.

    Above 1 discourages repetition (Keskar et al. 2019); ``counts`` are of prompt and text.
    """
    lowered = torch.where(logits < 0, logits * penalty, logits / penalty)
    return torch.where(counts > 0, lowered, logits)


def with_presence_and_frequency(
    logits: Float[Tensor, "batch vocab"],
    counts: Int[Tensor, "batch vocab"],
    presence: Number,
    frequency: Number,
) -> Float[Tensor, "batch vocab"]:
    """logits − presence·[count > 0] − frequency·count, as OpenAI documents the two.

    ``counts`` are of the generated text alone.
    """
    return logits - presence * (counts > 0) - frequency * counts


def with_bias(
    logits: Float[Tensor, "batch vocab"], bias: Mapping[int, Number]
) -> Float[Tensor, "batch vocab"]:
    """A number added to the logits of single tokens; −∞ forbids one."""
    changed = logits.clone()
    changed[:, list(bias)] += torch.tensor(list(bias.values()), dtype=logits.dtype)
    return changed
