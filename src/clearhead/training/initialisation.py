"""Fresh weights that train well, drawn from the seed."""

from __future__ import annotations

import torch
from torch import nn

from clearhead.layers.block import Block
from clearhead.models.build import build
from clearhead.models.config import ModelConfig
from clearhead.models.decoder import Decoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.training.chance import drawn_for

TIED_DEVIATION = 0.02  # larger, and every token would begin by predicting itself


def fresh_model(config: ModelConfig, seed: int) -> Decoder | EncoderDecoder:
    """The model that the config describes, with weights that follow from the seed."""
    with drawn_for("weights", seed):
        model = build(config)
        assert isinstance(model, Decoder | EncoderDecoder)
        for module in model.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        if config.norm_place != "after":
            _quiet_residuals(model)
            if config.tied and isinstance(model, Decoder):
                nn.init.normal_(model.stack.embedding.tokens.weight, std=TIED_DEVIATION)
    return model


@torch.no_grad()
def _quiet_residuals(model: nn.Module) -> None:
    """What blocks add to the states begins small, the smaller the more of them there are.

    Radford et al. 2019 divide by the square root of the number of residuals. Not by more: behind a
    layer that is silent at first, gradients begin as rounding errors.
    """
    blocks = [module for module in model.modules() if isinstance(module, Block)]
    for block in blocks:
        for last in (block.attention.output, block.feed_forward.down):
            last.weight.mul_((2 * len(blocks)) ** -0.5)
