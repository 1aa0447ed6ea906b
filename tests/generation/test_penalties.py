"""Penalties against transformers' and against OpenAI's formula by hand."""

from __future__ import annotations

import math

import torch
from transformers.generation import logits_process as theirs

from clearhead.generation import penalties


def test_counts() -> None:
    counts = penalties.token_counts([[3, 1, 3], [], [9, 0]], 5)  # 9 is outside: not counted
    assert counts.tolist() == [[0, 1, 0, 2, 0], [0, 0, 0, 0, 0], [1, 0, 0, 0, 0]]


def test_repetition_is_transformers() -> None:
    logits = torch.randn(3, 53, generator=torch.Generator().manual_seed(0))
    rows = [[5, 7, 5], [1, 2, 3], [52, 0, 52]]
    for penalty in (0.8, 1.3):
        wanted = theirs.RepetitionPenaltyLogitsProcessor(penalty)(
            torch.tensor(rows), logits.clone()
        )
        got = penalties.with_repetition_penalty(logits, penalties.token_counts(rows, 53), penalty)
        torch.testing.assert_close(got, wanted)


def test_presence_and_frequency_by_hand() -> None:
    logits = torch.tensor([[1.0, 2.0, 3.0, 4.0]])
    counts = penalties.token_counts([[1, 3, 3, 3]], 4)
    got = penalties.with_presence_and_frequency(logits, counts, presence=0.5, frequency=0.25)
    torch.testing.assert_close(got, torch.tensor([[1.0, 2.0 - 0.75, 3.0, 4.0 - 0.5 - 0.75]]))


def test_bias_leaves_the_logits_as_they_were() -> None:
    logits = torch.zeros(2, 4)
    got = penalties.with_bias(logits, {1: 2.5, 3: -math.inf})
    assert got.tolist() == [[0.0, 2.5, 0.0, -math.inf]] * 2
    assert not logits.any()
