"""In-batch negatives, computed by hand. (Gradients: tests/training/test_start.py.)"""

from __future__ import annotations

import math

import pytest
import torch

from clearhead.models.config import ModelConfig
from clearhead.models.encoder import Encoder
from clearhead.training.data.batches.sentences import sentences
from clearhead.training.objectives import MatchingSentences


@pytest.fixture
def model() -> Encoder:
    torch.manual_seed(3)
    config = ModelConfig(kind="encoder", head="embedding", vocab=31, context=17, model=6, layers=1,
                         heads=3, feed_forward=5)  # fmt: skip
    return Encoder(config).eval().requires_grad_(False)


def test_the_loss_by_hand(model: Encoder) -> None:
    pairs = [([3, 5], [7, 11, 13]), ([17], [19, 23]), ([2, 4, 6, 8], [10])]
    vectors = [[model(torch.tensor([side]))[0] for side in pair] for pair in pairs]
    wanted = 0.0
    for number, (first, _) in enumerate(vectors):
        scores = [20 * float(first @ second) for _, second in vectors]
        wanted -= scores[number] - math.log(sum(map(math.exp, scores)))
    assert float(MatchingSentences(model)(sentences(pairs, 0))) == pytest.approx(wanted, rel=1e-4)


def test_the_same_sentence_is_no_wrong_answer(model: Encoder) -> None:
    twice = [([3, 5], [7, 11]), ([17], [7, 11])]
    assert float(MatchingSentences(model)(sentences(twice, 0))) == pytest.approx(0.0, abs=1e-6)
    assert float(MatchingSentences(model)(sentences(twice[:1], 0))) == pytest.approx(0.0, abs=1e-6)
