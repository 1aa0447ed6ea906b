"""Longformer's windows as rows over all keys: what it softmaxes has one place for each distance."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from watched.events import Event

KINDS = ("LongformerSelfAttention", "LEDEncoderSelfAttention")


def with_every_key(model: nn.Module, event: Event) -> Event:
    """An event of such a module with weights (batch, query, head, key); any other as it is."""
    module = dict(model.named_modules()).get(event.path)
    if type(module).__name__ not in KINDS or event.weights.ndim != 4:
        return event
    return replace(event, weights=_placed(event.weights))


def _placed(local: Tensor) -> Tensor:
    """Place p of row i is key i − window + p; what stands beyond the text has no weight."""
    rows, places = local.shape[1], local.shape[3]
    whole = local.new_zeros(*local.shape[:3], rows)
    for place in range(places):
        column = torch.arange(rows) - places // 2 + place
        there = ((column >= 0) & (column < rows)).nonzero().flatten()
        whole[:, there, :, column[there]] += local[:, there, :, place].transpose(0, 1)
    return whole
