"""The sampling step: tokens, the model's probabilities, alternatives."""

from __future__ import annotations

import math
import random

import pytest
import torch

from clearhead.checkpoints.load import Loaded
from clearhead.errors import ClearheadError
from clearhead.generation.row import Row
from clearhead.generation.settings import Settings
from clearhead.generation.stop_strings import StopStrings
from clearhead.generation.token_sampler import TokenSampler, tokenizer_logits

LOGITS = torch.tensor([[0.5, 0.25, 0.125, 0.125], [0.1, 0.2, 0.3, 0.4]]).log()


def rows(count: int = 2) -> list[Row]:
    return [
        Row(i, 0, [1], [1], None, StopStrings(), random.Random(f"{i}"), 17, ids=[])
        for i in range(count)
    ]


def test_greedy_tokens_with_the_models_probabilities() -> None:
    first, second = TokenSampler(Settings(temperature=0), None).sample(LOGITS + 3, rows())
    assert (first.token, second.token) == (0, 3)
    assert (first.probability, second.probability) == pytest.approx((0.5, 0.4))
    assert first.alternatives == ()


def test_penalties_change_the_token_and_not_its_probability() -> None:
    settings = Settings(temperature=0, presence_penalty=9.0, logit_bias={1: -math.inf})
    texts = rows()
    texts[0].ids, texts[1].ids = [0], [3]
    first, second = TokenSampler(settings, None).sample(LOGITS, texts)
    assert (first.token, second.token) == (2, 2)
    assert (first.probability, second.probability) == pytest.approx((0.125, 0.3))


def test_each_row_has_its_own_random_generator() -> None:
    sampler = TokenSampler(Settings(temperature=1.0), None)
    logits = torch.zeros(2, 997)
    together = [one.token for one in sampler.sample(logits, rows())]
    assert [one.token for one in sampler.sample(logits[:1], rows(1))] == together[:1]
    assert together == [int(997 * random.Random(f"{i}").random()) for i in range(2)]


def test_alternatives_are_the_most_likely_tokens(wordy: Loaded) -> None:
    assert wordy.tokenizer is not None
    word = wordy.tokenizer.encode("the door", special=False)[-1]
    logits = torch.full((1, 307), -9.0)
    logits[0, word], logits[0, 9], logits[0, 305] = 2.0, 1.0, 50.0  # 305: beyond the tokenizer
    row = rows(1)
    row[0].prompt = wordy.tokenizer.encode("the", special=False)
    (found,) = TokenSampler(Settings(temperature=0), wordy.tokenizer, 2).sample(logits, row)
    assert [one.token for one in found.alternatives] == [word, 9]
    assert found.alternatives[0].text == wordy.tokenizer.decode([word])
    probabilities = logits[0, :300].softmax(-1)
    for one in found.alternatives:
        assert one.probability == pytest.approx(float(probabilities[one.token]), rel=1e-5)


def test_logits_that_are_no_numbers() -> None:
    with pytest.raises(ClearheadError, match="no token can be sampled: the model's logits are NaN"):
        TokenSampler(Settings(temperature=0), None).sample(LOGITS * math.nan, rows())


def test_entries_beyond_the_tokenizer(wordy: Loaded) -> None:
    logits = torch.randn(3, 307)
    assert tokenizer_logits(logits, None) is logits
    assert torch.equal(tokenizer_logits(logits, wordy.tokenizer), logits[:, :300])
    assert tokenizer_logits(logits[:, :293], wordy.tokenizer).shape == (3, 293)
