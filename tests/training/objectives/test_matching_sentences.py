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


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_smoothing_beside_a_sentence_that_occurs_twice(model: Encoder, smoothing: float) -> None:
    pairs = [([3, 5], [7, 11]), ([17], [7, 11]), ([2, 4], [19, 23])]
    vectors = [[model(torch.tensor([side]))[0] for side in pair] for pair in pairs]
    compared = [[0, 2], [1, 2], [0, 1, 2]]  # 0 and 1 have the same second sentence
    wanted = 0.0
    for number, others in enumerate(compared):
        scores = {other: 20 * float(vectors[number][0] @ vectors[other][1]) for other in others}
        total = math.log(sum(map(math.exp, scores.values())))
        mean = sum(total - score for score in scores.values()) / len(others)
        wanted += (1 - smoothing) * (total - scores[number]) + smoothing * mean
    weights = [p.requires_grad_() for p in model.parameters()]
    loss = MatchingSentences(model)(sentences(pairs, 0), smoothing)
    assert float(loss.detach()) == pytest.approx(wanted, rel=1e-4)
    gradients = torch.autograd.grad(loss, weights, allow_unused=True)
    assert all(g is None or bool(g.isfinite().all()) for g in gradients)


def test_the_same_sentence_is_no_wrong_answer(model: Encoder) -> None:
    twice = [([3, 5], [7, 11]), ([17], [7, 11])]
    assert float(MatchingSentences(model)(sentences(twice, 0))) == pytest.approx(0.0, abs=1e-6)
    assert float(MatchingSentences(model)(sentences(twice[:1], 0))) == pytest.approx(0.0, abs=1e-6)
