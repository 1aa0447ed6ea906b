"""Initial weights, drawn from the random seed."""

from __future__ import annotations

import torch
from torch import nn

from clearhead.layers.block import Block
from clearhead.models.build import build
from clearhead.models.config import ModelConfig
from clearhead.models.decoder import Decoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.training.random_seed import seeded_for

TIED_DEVIATION = 0.02  # if it were larger, every token would at first predict itself


def fresh_model(config: ModelConfig, seed: int) -> Decoder | EncoderDecoder:
    """The model that the config describes, with initial weights drawn from the seed."""
    with seeded_for("weights", seed):
        model = build(config)
        assert isinstance(model, Decoder | EncoderDecoder)
        for module in model.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        if config.norm_place != "after":
            _scale_residuals(model)
            if config.tied and isinstance(model, Decoder):
                nn.init.normal_(model.stack.embedding.tokens.weight, std=TIED_DEVIATION)
    return model


@torch.no_grad()
def _scale_residuals(model: nn.Module) -> None:
    """Scale down the last matrices of each block, the more blocks the smaller.

    Radford et al. 2019 divide by the square root of the number of residuals. Not by more: behind a
    layer whose output is about 0, gradients would begin as rounding errors.
    """
    blocks = [module for module in model.modules() if isinstance(module, Block)]
    for block in blocks:
        for last in (block.attention.output, block.feed_forward.down):
            last.weight.mul_((2 * len(blocks)) ** -0.5)
