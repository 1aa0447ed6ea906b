"""Random models of random configs: every option of an architecture, in combinations by chance."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import torch

import clearhead as ch
from clearhead.checkpoints.load import Loaded
from clearhead.models.build import build

VOCAB = 53


def random_config(seed: int) -> ch.ModelConfig:
    """A small model of any kind whose options are drawn independently of each other."""
    draw = random.Random(seed)
    kind: Any = draw.choice(["decoder", "decoder", "encoder", "encoder-decoder"])
    layers = draw.choice([1, 2, 3])
    heads = draw.choice([1, 2, 3, 6])
    both = kind == "encoder-decoder"
    options: dict[str, Any] = {
        "head": "masked" if kind == "encoder" else "language",
        "encoder_layers": draw.choice([layers, layers + 1]) if both else None,
        "shared_embedding": not both or draw.random() < 0.5,
        "kv_heads": draw.choice([one for one in (1, 2, 3, 6) if heads % one == 0]),
        "value_dim": draw.choice([None, 7]),
        "positions": draw.choice(["learned", "sinusoidal", "rotary", "alibi", "relative", "none"]),
        "position_offset": draw.choice([0, 0, 2]),
        "segments": draw.choice([0, 2]) if kind == "encoder" else 0,
        "attention_scale": draw.choice([None, 0.3]),
        "attention_softcap": draw.choice([None, 3.0]),
        "window": draw.choice([None, 3]),
        "window_rotary_base": None,
        "activation": draw.choice(["silu", "gelu", "relu"]),
        "norm": draw.choice(["layer", "rms"]),
        "norm_place": draw.choice(["before", "after", "around"]),
        "embedding_scale": draw.choice([1.0, 2.3]),
        "output_scale": draw.choice([1.0, 0.7]),
        "output_softcap": draw.choice([None, 4.0]),
    }
    flags = (
        "attention_bias", "attention_output_bias", "attention_norm", "sinks", "gated",
        "feed_forward_bias", "embedding_norm", "tied", "output_bias",
    )  # fmt: skip
    options |= {name: draw.random() < 0.5 for name in flags}
    options["norm_offset"] = options["norm"] == "rms" and draw.random() < 0.5
    if options["window"] and options["encoder_layers"] in (None, layers) and draw.random() < 0.5:
        options["window_layers"] = tuple(draw.random() < 0.5 for _ in range(layers))
        if options["positions"] == "rotary":
            options["window_rotary_base"] = 500.0
    if options["positions"] != "rotary":
        options["window_rotary_base"] = None
    return ch.ModelConfig(
        kind=kind, vocab=VOCAB, context=41, model=18, layers=layers, heads=heads, key_dim=10,
        feed_forward=23, relative_buckets=8, relative_distance=19, start=3, eos=(2,),
        **options,
    )  # fmt: skip


def random_model(seed: int) -> Loaded:
    """A model of such a config, every parameter random: norms, biases, sinks too."""
    config = random_config(seed)
    torch.manual_seed(seed)
    model = build(config).eval().requires_grad_(False)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
            if parameter.ndim == 1:
                parameter.add_(0.8)
    return Loaded(f"random {seed}", Path(), model, config, None)
