"""The weights of a small encoder-decoder, for a page that runs the model itself."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.explain.course.packed import packed
from clearhead.explain.course.tokens import tokenizer_of
from clearhead.models.encoder_decoder import EncoderDecoder

MOST = 1_000_000  # parameters that still fit into a page


def encoder_decoder_weights(loaded: Loaded) -> dict[str, Any]:
    """Every parameter by name with its shape, all numbers in one block, and the vocabulary."""
    model = loaded.model
    if not isinstance(model, EncoderDecoder):
        raise InputError(f"an encoder-decoder is wanted; got {type(model).__name__}.")
    parameters: dict[str, Tensor] = {
        name: one for name, one in model.named_parameters() if not name.endswith("tokens.weight")
    }
    parameters["tokens"] = model.encoder.embedding.tokens.weight
    count = sum(one.numel() for one in parameters.values())
    if count > MOST:
        raise InputError(f"a page runs models of at most {MOST:,} parameters; this has {count:,}.")
    config = loaded.config
    return {
        "shapes": {name: list(one.shape) for name, one in parameters.items()},
        "numbers": packed(*parameters.values()),
        "pieces": [tokenizer_of(loaded).piece(id) for id in range(config.vocab)],
        "heads": config.heads,
        "model": config.model,
        "layers": config.layers,
        "encoder_layers": config.encoder_layers,
        "embedding_scale": config.embedding_scale,
        "epsilon": config.norm_epsilon,
        "halves": config.positions == "sinusoidal-halves",
        "context": config.context,
        "eos": tokenizer_of(loaded).specials.eos,
        "start": tokenizer_of(loaded).specials.bos,
        "parameters": count,
    }
