"""From a config to a model."""

from __future__ import annotations

from typing import TypeAlias

from clearhead.models.config import ModelConfig
from clearhead.models.decoder import Decoder
from clearhead.models.encoder import Encoder
from clearhead.models.encoder_decoder import EncoderDecoder

Model: TypeAlias = Encoder | Decoder | EncoderDecoder
KINDS: dict[str, type[Encoder] | type[Decoder] | type[EncoderDecoder]] = {
    "encoder": Encoder,
    "decoder": Decoder,
    "encoder-decoder": EncoderDecoder,
}


def build(config: ModelConfig) -> Model:
    """Return the model that the config describes, with random initial weights."""
    return KINDS[config.kind](config)
