"""Tiny models and hand-made passages for the tests of explain, views and their commands."""

from __future__ import annotations

import functools
from pathlib import Path

import torch

import clearhead as ch
from clearhead.checkpoints.load import Loaded
from clearhead.text.subwords.training import train_bpe
from clearhead.text.token import Token
from clearhead.trace.passage import Passage

TEXT = "the students opened their books and their minds and the door 😀 naïve"


@functools.cache
def decoder(context: int = 211) -> Loaded:
    """A decoder with random weights: 2 layers of 4 heads."""
    tokenizer = train_bpe([TEXT] * 3, 300)
    torch.manual_seed(5)
    config = ch.ModelConfig(
        kind="decoder", family="llama", vocab=300, context=context, model=24, layers=2, heads=4,
        kv_heads=2, feed_forward=31, gated=True, bos=1, eos=(2,), tied=False,
    )  # fmt: skip
    model = ch.Decoder(config).eval().requires_grad_(False)
    return Loaded("tiny", Path("tiny"), model, config, tokenizer)


@functools.cache
def translator() -> Loaded:
    """An encoder-decoder with random weights."""
    tokenizer = train_bpe([TEXT] * 3, 300, add_eos=True)
    torch.manual_seed(5)
    config = ch.ModelConfig(
        kind="encoder-decoder", family="t5", vocab=300, context=512, model=24, layers=2,
        encoder_layers=1, heads=4, feed_forward=31, positions="relative", attention_scale=1.0,
        activation="relu", norm_epsilon=1e-6, tied=False, eos=(2,), pad=0, start=0, bos=None,
    )  # fmt: skip
    model = ch.EncoderDecoder(config).eval().requires_grad_(False)
    for name, weights in model.named_parameters():
        if "relative" in name or "position" in name:
            torch.nn.init.normal_(weights)  # as made, they are zeros
    return Loaded("turn", Path("turn"), model, config, tokenizer)


def passage(pieces: list[str]) -> Passage:
    """Tokens that read like these pieces; those in square brackets are special."""
    text, tokens = "", []
    for number, piece in enumerate(pieces):
        special = piece.startswith("[") and piece.endswith("]")
        start, text = len(text), text if special else text + piece
        tokens.append(Token(number, piece, start, len(text), special))
    return Passage(text, tuple(tokens))
