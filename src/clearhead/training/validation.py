"""The validation loss: the loss on texts that the model is not trained on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import nn

from clearhead.training.data.batch import Batch
from clearhead.training.processes import Processes


@torch.no_grad()
def validation_loss(
    objective: nn.Module,
    batches: Sequence[Batch],
    processes: Processes,
    device: torch.device,
    precision: AbstractContextManager[Any],
    stop: Callable[[], bool] = lambda: False,
) -> float | None:
    """The mean loss of a token, in nats, without label smoothing; each process takes its share.

    All processes compute the same number of batches, because sharded models need all processes at
    once; a batch that is computed only for that does not count. None as soon as ``stop()`` is true.
    """
    total, tokens = 0.0, 0
    mine = range(processes.rank, len(batches), processes.count)
    with precision:
        for number in range(-(-len(batches) // processes.count)):
            if stop():
                return None
            counts = number < len(mine)
            batch = batches[mine[number] if counts else 0].to(device)
            loss = float(objective(batch))
            if counts:
                total, tokens = total + loss, tokens + batch.tokens
    total, everywhere = processes.sum(total, float(tokens))
    return total / everywhere
