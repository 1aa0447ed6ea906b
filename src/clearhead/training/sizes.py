"""Sizes of models to train, in architectures that transformers and serving engines read too.

A language model has Qwen 3's shape: rotary positions, RMSNorm before the layers and on queries and
keys, SwiGLU. A model for pairs has Marian's, the paper's: sinusoidal positions, LayerNorm after.
"""

from __future__ import annotations

from typing import Any

from clearhead.errors import ConfigError
from clearhead.models.config import ModelConfig
from clearhead.models.families.family import family_named

SIZES: dict[str, dict[str, int]] = {
    "tiny": {"model": 128, "layers": 4, "heads": 4, "feed_forward": 384, "context": 128},
    "small": {"model": 256, "layers": 6, "heads": 8, "feed_forward": 768, "context": 256},
    "base": {"model": 512, "layers": 8, "heads": 8, "feed_forward": 1536, "context": 512},
    "paper-base": {"model": 512, "layers": 6, "heads": 8, "feed_forward": 2048, "context": 1024},
    "paper-big": {"model": 1024, "layers": 6, "heads": 16, "feed_forward": 4096, "context": 1024},
}
PAIR_LAYERS = {"tiny": 2, "small": 3, "base": 4}  # of the encoder, and of the decoder
PAPER_DROPOUT = {"paper-base": 0.1, "paper-big": 0.3}


def size_fields(size: str) -> dict[str, int]:
    """The widths of a size."""
    if size not in SIZES:
        raise ConfigError(f"there is no size {size!r}; there are {', '.join(SIZES)}.")
    return dict(SIZES[size])


def language_config(size: str, vocab: int, **changes: Any) -> ModelConfig:
    """A decoder of a size, with some fields changed."""
    fields: dict[str, Any] = {
        "kind": "decoder", "family": "llama", "vocab": vocab, "gated": True,
        "attention_norm": True, "norm_epsilon": 1e-6, "tied": True,
        "dropout": PAPER_DROPOUT.get(size, 0.0),
    }  # fmt: skip
    return openable(ModelConfig.from_fields(size_fields(size) | fields | changes))


def pairs_config(size: str, vocab: int, **changes: Any) -> ModelConfig:
    """An encoder-decoder of a size, with some fields changed."""
    widths = size_fields(size)
    layers = PAIR_LAYERS.get(size, widths["layers"])
    fields: dict[str, Any] = {
        "kind": "encoder-decoder", "family": "bart", "vocab": vocab, "layers": layers,
        "encoder_layers": layers, "positions": "sinusoidal-halves", "attention_bias": True,
        "attention_output_bias": True, "activation": "relu", "feed_forward_bias": True,
        "norm": "layer", "norm_place": "after", "output_bias": True, "context": 512,
        "embedding_scale": changes.get("model", widths["model"]) ** 0.5,
        "dropout": PAPER_DROPOUT.get(size, 0.1),
    }  # fmt: skip
    return openable(ModelConfig.from_fields(widths | fields | changes))


def openable(config: ModelConfig) -> ModelConfig:
    """The config, in our own format where its family's config.json cannot express all of it."""
    family = family_named(config.family)
    read_back = family.read(family.write(config)).changed(dropout=config.dropout)
    return (
        config if read_back.resolved() == config.resolved() else config.changed(family="clearhead")
    )
