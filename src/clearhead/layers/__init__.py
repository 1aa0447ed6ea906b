"""Modules made of the functions in ``attention/``: hidden states in, hidden states out.

====================  ========================================================================
``embedding``         token ids to hidden states: c + p
``positions``         learned positions, and learned biases by distance
``multi_head``        multi-head attention: project, place, remember, attend, project back
``attention_checks``  options, states and caches that such a layer refuses
``feed_forward``      the feed-forward layer
``normalisation``     LayerNorm and RMSNorm
``block``             one block of a transformer, with residual connections
``dropout``           dropout
``linear``            a linear map by the quicker of torch's two matrix products
``low_rank``          a linear map with a LoRA adapter
``ragged``            rows of different lengths without their padding
``torch_weights``     from and to ``nn.MultiheadAttention``
====================  ========================================================================
"""

from typing import TYPE_CHECKING

from clearhead.lazy import lazy

if TYPE_CHECKING:
    from clearhead.layers.block import Block as Block
    from clearhead.layers.embedding import Embedding as Embedding
    from clearhead.layers.feed_forward import FeedForward as FeedForward
    from clearhead.layers.multi_head import MultiHeadAttention as MultiHeadAttention
    from clearhead.layers.torch_weights import from_torch as from_torch
    from clearhead.layers.torch_weights import to_torch as to_torch

_HOMES = {
    "Block": "clearhead.layers.block",
    "Embedding": "clearhead.layers.embedding",
    "FeedForward": "clearhead.layers.feed_forward",
    "MultiHeadAttention": "clearhead.layers.multi_head",
    "from_torch": "clearhead.layers.torch_weights",
    "to_torch": "clearhead.layers.torch_weights",
}
__all__ = list(_HOMES)
__getattr__, __dir__ = lazy(__name__, _HOMES)
