"""The validation loss: the loss on texts that the model is not trained on."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import nn

from clearhead.attention.observers import OBSERVERS, Observer
from clearhead.training.data.batches.batch import Batch
from clearhead.training.processes import Processes


@torch.no_grad()
def validation_loss(
    objective: nn.Module,
    batches: Sequence[Batch],
    processes: Processes,
    device: torch.device,
    precision: AbstractContextManager[Any],
    stop: Callable[[], bool] = lambda: False,
    observer: Observer | None = None,
) -> float | None:
    """The mean loss of a token, in nats, without label smoothing; each process takes its share.

    All processes compute the same number of batches, because sharded models need all processes at
    once; a batch that is computed only for that does not count. None as soon as ``stop()`` is true.
    ``observer`` is told of every attention call of the first batch.
    """
    total, tokens = 0.0, 0
    mine = range(processes.rank, len(batches), processes.count)
    with precision:
        for number in range(-(-len(batches) // processes.count)):
            if stop():
                return None
            counts = number < len(mine)
            batch = batches[mine[number] if counts else 0].to(device)
            with nullcontext() if observer is None or number else OBSERVERS.observed_by(observer):
                loss = float(objective(batch))
            if counts:
                total, tokens = total + loss, tokens + batch.tokens
    total, everywhere = processes.sum(total, float(tokens))
    return total / everywhere


def bits_per_byte(loss: float, bytes_per_token: float | None) -> float | None:
    """A loss in nats for each token as bits for each byte of text: vocabularies compare by it.

    >>> round(bits_per_byte(2.0, 4.0), 4)
    0.7213
    """
    return None if not bytes_per_token else loss / math.log(2) / bytes_per_token
