"""Masked tokens: padding changes nothing. (Against transformers: tests/training/test_start.py.)"""

from __future__ import annotations

import pytest
import torch

from clearhead.models.config import ModelConfig
from clearhead.models.encoder import Encoder
from clearhead.training.data.batches.batch import IGNORED
from clearhead.training.data.batches.masked import MaskedBatch
from clearhead.training.objectives import MaskedToken


def test_rows_do_not_depend_on_their_neighbours() -> None:
    torch.manual_seed(3)
    config = ModelConfig(kind="encoder", head="masked", vocab=31, context=17, model=6, layers=2,
                         heads=3, feed_forward=5)  # fmt: skip
    objective = MaskedToken(Encoder(config))
    ids, counts = torch.randint(31, (3, 11)), torch.tensor([11, 5, 7])
    targets = torch.randint(31, (3, 11)).masked_fill(torch.arange(11) >= counts[:, None], IGNORED)
    together = float(objective(MaskedBatch(ids, targets, counts=counts)).detach())
    alone = sum(
        float(objective(MaskedBatch(ids[n : n + 1, :count], targets[n : n + 1, :count],
                                    counts=counts[n : n + 1])).detach())
        for n, count in enumerate(counts.tolist())
    )  # fmt: skip
    assert together == pytest.approx(alone, rel=1e-5)
