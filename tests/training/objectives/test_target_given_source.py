"""Predicting the target of a source."""

from __future__ import annotations

import pytest
import torch

from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.training.data.batches.pairs import padded
from clearhead.training.initialisation import fresh_model
from clearhead.training.objectives import TargetGivenSource, objective_of
from clearhead.training.sizes import pairs_config

SMALL = {"model": 12, "layers": 1, "heads": 2, "feed_forward": 10, "context": 16, "dropout": 0.0}


def test_padding_changes_no_loss_of_a_pair() -> None:
    model = fresh_model(pairs_config("tiny", 31, **SMALL, encoder_layers=1), 3)
    assert isinstance(model, EncoderDecoder)
    objective = objective_of(model)
    assert isinstance(objective, TargetGivenSource)
    pairs = [([5, 6, 7, 8, 9], [3, 4, 2]), ([11], [7, 2]), ([13, 14], [9, 9, 9, 9, 2])]
    with torch.no_grad():
        together = float(objective(padded(pairs, start=1, pad=0)))
        alone = sum(float(objective(padded([pair], start=1, pad=0))) for pair in pairs)
    assert together == pytest.approx(alone, rel=1e-5)
