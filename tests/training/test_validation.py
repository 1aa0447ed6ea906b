"""The validation loss is the mean of a token, however the work is shared."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
import torch
from torch import Tensor, nn

from clearhead.training.data.batches.batch import IGNORED, Batch
from clearhead.training.processes import ALONE, Processes
from clearhead.training.validation import validation_loss

CPU = torch.device("cpu")


class SumOfTargets(nn.Module):
    """A loss that can be computed by hand: the sum of the targets."""

    def forward(self, batch: Batch) -> Tensor:
        return batch.targets[batch.targets != IGNORED].float().sum()


def batch(*targets: int) -> Batch:
    row = torch.tensor([targets])
    return Batch(torch.zeros_like(row), row)


BATCHES = [batch(1, 2, 3), batch(5, IGNORED, IGNORED), batch(7, 11, IGNORED)]


def test_the_mean_of_a_token() -> None:
    found = validation_loss(SumOfTargets(), BATCHES, ALONE, CPU, nullcontext())
    assert found == pytest.approx((6 + 5 + 18) / 6)


def test_shares_add_up_and_extra_batches_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    sums: list[tuple[float, ...]] = []

    def kept(self: Processes, *values: float) -> list[float]:
        sums.append(values)
        return list(values)

    monkeypatch.setattr(Processes, "sum", kept)
    for rank in range(2):
        validation_loss(SumOfTargets(), BATCHES, Processes(rank, 2), CPU, nullcontext())
    assert sums == [(24.0, 5.0), (5.0, 1.0)]
