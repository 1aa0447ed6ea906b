"""Predicting the next token: documents of one row do not see each other."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from clearhead.models.config import ModelConfig, Positions
from clearhead.models.decoder import Decoder
from clearhead.training.data.batches.batch import IGNORED, PackedBatch
from clearhead.training.data.batches.packed import in_order
from clearhead.training.initialisation import fresh_model
from clearhead.training.objectives import NextToken, objective_of, packed_states
from clearhead.training.sizes import language_config

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
    length = sum(map(len, DOCUMENTS)) - 1
    (batch,) = in_order(DOCUMENTS, context=length, batch_tokens=length)
    assert batch.documents is not None and batch.positions is not None
    together = packed_states(objective.model.stack, batch.ids, batch.documents, batch.positions)[0]
    at = 0
    for ids in (*DOCUMENTS[:2], DOCUMENTS[2][:-1]):
        alone = objective.model.stack(torch.tensor([ids]))[0]
        torch.testing.assert_close(together[at : at + len(ids)], alone, atol=1e-5, rtol=1e-4)
        at += len(ids)
