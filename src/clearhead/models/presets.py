"""The models of the paper (Vaswani et al. 2017, table 3)."""

from __future__ import annotations

from typing import Any

from clearhead.arguments import shown
from clearhead.errors import ConfigError
from clearhead.models.config import ModelConfig

PAPER_VOCABULARY = 37_000  # English-German, source and target together

_BASE: dict[str, Any] = {
    "kind": "encoder-decoder",
    "vocab": PAPER_VOCABULARY,
    "context": 1024,
    "model": 512,
    "layers": 6,
    "encoder_layers": 6,
    "heads": 8,
    "feed_forward": 2048,
    "positions": "sinusoidal",
    "activation": "relu",
    "feed_forward_bias": True,
    "norm": "layer",
    "norm_place": "after",
    "embedding_scale": 512**0.5,
    "dropout": 0.1,
}
PRESETS: dict[str, dict[str, Any]] = {
    "transformer-base": _BASE,
    "transformer-big": _BASE
    | {
        "model": 1024,
        "heads": 16,
        "feed_forward": 4096,
        "embedding_scale": 1024**0.5,
        "dropout": 0.3,
    },
}


def preset(name: str, **changes: Any) -> ModelConfig:
    """A preset's config, with some fields changed."""
    if not isinstance(name, str) or name not in PRESETS:
        raise ConfigError(
            f"there is no preset of the name {shown(name)}; there are {', '.join(PRESETS)}."
        )
    return ModelConfig.from_fields(PRESETS[name] | changes)
