"""Encoder, decoder and encoder-decoder from one configurable stack: ids in, logits out.

The order in which to read the modules:

=============================  =================================================================
``config``                     ``ModelConfig``: a model, completely described
``config_checks``              what a config must be: types, sizes, no contradictions
``field_types``, ``scalings``  checks of a config's fields; rotary scalings in JSON
``presets``                    the configs of the paper (Vaswani et al. 2017)
``stack``                      embedding, blocks, final normalisation: every model is made of it
``heads``                      output heads: hidden states in, logits or embeddings out
``padding``                    rows of different lengths in one batch
``cache``                      the key-value caches of all layers
``inputs``                     checks of what a model is given
``encoder``, ``decoder``       two of the three kinds of models
``encoder_decoder``            the third: a decoder that attends to an encoder
``build``                      from a config to a model
``families``                   how public checkpoints describe and name the same parts
=============================  =================================================================
"""

from typing import TYPE_CHECKING

from clearhead.lazy import lazy

if TYPE_CHECKING:
    from clearhead.models.cache import ModelCache as ModelCache
    from clearhead.models.config import ModelConfig as ModelConfig
    from clearhead.models.decoder import Decoder as Decoder
    from clearhead.models.encoder import Encoder as Encoder
    from clearhead.models.encoder_decoder import EncoderDecoder as EncoderDecoder
    from clearhead.models.presets import preset as preset

_HOMES = {
    "Decoder": "clearhead.models.decoder",
    "Encoder": "clearhead.models.encoder",
    "EncoderDecoder": "clearhead.models.encoder_decoder",
    "ModelCache": "clearhead.models.cache",
    "ModelConfig": "clearhead.models.config",
    "preset": "clearhead.models.presets",
}
__all__ = list(_HOMES)
__getattr__, __dir__ = lazy(__name__, _HOMES)
