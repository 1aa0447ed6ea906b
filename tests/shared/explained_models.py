"""Models whose predictions are explained: random decoders, and two explanations made once."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

import clearhead as ch
from clearhead.checkpoints.load import Loaded
from clearhead.views.why.shown import ShownWhy
from tests.shared.tiny_models import token_ids

SIZES: dict[str, Any] = {
    "kind": "decoder", "vocab": 97, "context": 61, "model": 42, "layers": 3, "heads": 6,
    "key_dim": 10, "feed_forward": 67,
}  # fmt: skip


def random_decoder(seed: int = 0, **changes: Any) -> Loaded:
    """A decoder whose every parameter, biases and norms too, is random."""
    config = ch.ModelConfig(**SIZES | changes)
    torch.manual_seed(seed)
    model = ch.Decoder(config).eval().requires_grad_(False)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.25)
            if parameter.ndim == 1:
                parameter.add_(0.8)
    return Loaded("random", Path(), model, config, None)


@cache
def shown_why() -> ShownWhy:
    return ch.why(random_decoder(), token_ids(7).tolist(), 13, 29)


@cache
def why_of_a_date() -> ShownWhy:
    return ch.why("dates", "2021-", source="3rd of March 2021")


def falsify_a_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    """One weight of each row is not what the model computed."""
    from clearhead.explain.why import sublayers

    right = sublayers._row_weights

    def wrong(call: Any, row: int) -> Any:
        weights, keys = right(call, row)
        weights[2, 1] += 1e-3
        return weights, keys

    monkeypatch.setattr(sublayers, "_row_weights", wrong)
