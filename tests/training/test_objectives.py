"""Objectives: the sum of the losses of the predicted tokens."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from clearhead.models.config import ModelConfig, Positions
from clearhead.models.decoder import Decoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.training.data.batch import IGNORED, PackedBatch
from clearhead.training.data.packed_batches import cut, joined
from clearhead.training.data.pair_batches import padded
from clearhead.training.initialisation import fresh_model
from clearhead.training.objectives import NextToken, TargetGivenSource, objective_of, packed_states
from clearhead.training.sizes import language_config, pairs_config

SMALL = {"model": 12, "layers": 1, "heads": 2, "feed_forward": 10, "context": 16, "dropout": 0.0}
DOCUMENTS = [[10, 11, 12, 13, 14], [20, 21, 22], [30, 31, 32, 33, 34, 35, 36]]


def test_next_token_is_the_cross_entropy_of_the_logits() -> None:
    model = fresh_model(language_config("tiny", 31, **SMALL), 3)
    assert isinstance(model, Decoder)
    ids, targets = torch.randint(31, (2, 7)), torch.randint(31, (2, 7))
    targets[1, 4:] = IGNORED
    objective = objective_of(model)
    assert isinstance(objective, NextToken)
    wanted = functional.cross_entropy(
        model(ids).flatten(0, 1), targets.flatten(), reduction="sum", ignore_index=IGNORED
    )
    torch.testing.assert_close(objective(PackedBatch(ids, targets)), wanted)


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


@pytest.mark.parametrize("positions", ["rotary", "learned", "sinusoidal", "alibi", "relative"])
def test_a_packed_document_gets_the_states_that_it_gets_alone(positions: Positions) -> None:
    config = ModelConfig(
        kind="decoder", vocab=41, context=23, model=12, layers=2, heads=3, feed_forward=19,
        positions=positions,
    )  # fmt: skip
    model = fresh_model(config, seed=5)
    for parameter in model.parameters():  # so that no residual is silent
        torch.nn.init.normal_(parameter, std=0.3)
    objective = NextToken(model)  # type: ignore[arg-type]
    stream, owners = joined([torch.tensor(ids) for ids in DOCUMENTS])
    batch = cut(stream, owners, torch.tensor([0]), len(stream) - 1)
    assert batch.documents is not None and batch.positions is not None
    together = packed_states(objective.model.stack, batch.ids, batch.documents, batch.positions)[0]
    at = 0
    for ids in (*DOCUMENTS[:2], DOCUMENTS[2][:-1]):
        alone = objective.model.stack(torch.tensor([ids]))[0]
        torch.testing.assert_close(together[at : at + len(ids)], alone, atol=1e-5, rtol=1e-4)
        at += len(ids)
