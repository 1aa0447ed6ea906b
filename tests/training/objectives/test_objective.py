"""The interface: the sum of the losses of a batch's targets."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from clearhead.models.decoder import Decoder
from clearhead.training.data.batches.batch import IGNORED, Batch
from clearhead.training.initialisation import fresh_model
from clearhead.training.objectives.objective import PredictedTokens
from clearhead.training.sizes import language_config


class FromZeros(PredictedTokens):
    """Predicts from states that are all the same."""

    def __init__(self, model: Decoder) -> None:
        super().__init__()
        self.model: Decoder = model

    @property
    def embedding(self) -> Tensor:
        return self.model.stack.embedding.tokens.weight

    def states(self, batch: Batch) -> Tensor:
        return torch.ones(*batch.ids.shape, 12)


def test_the_sum_over_targets_with_and_without_smoothing() -> None:
    config = language_config("tiny", 31, model=12, layers=1, heads=2, feed_forward=10, context=16)
    model = fresh_model(config, 3)
    assert isinstance(model, Decoder)
    targets = torch.tensor([[3, IGNORED, 5], [IGNORED, IGNORED, 7]])
    batch = Batch(torch.zeros_like(targets), targets)
    logits = torch.ones(3, 12) @ model.stack.embedding.tokens.weight.T
    for smoothing in (0.0, 0.2):
        wanted = functional.cross_entropy(
            logits, torch.tensor([3, 5, 7]), reduction="sum", label_smoothing=smoothing
        )
        torch.testing.assert_close(FromZeros(model)(batch, smoothing), wanted)
