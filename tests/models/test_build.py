from __future__ import annotations

from typing import Any

import pytest

import clearhead as ch
from clearhead.models.build import build

SIZES: dict[str, Any] = {
    "vocab": 11, "context": 13, "model": 6, "layers": 2, "heads": 3, "feed_forward": 7,
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "more", "model"),
    [
        ("encoder", {"head": "none"}, ch.Encoder),
        ("decoder", {}, ch.Decoder),
        ("encoder-decoder", {"encoder_layers": 1}, ch.EncoderDecoder),
    ],
)
def test_the_kind_decides(kind: Any, more: dict[str, Any], model: type) -> None:
    config = ch.ModelConfig(kind=kind, **SIZES, **more)
    made = build(config)
    assert type(made) is model
    assert made.config is config
