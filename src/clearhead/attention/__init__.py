"""Attention as pure functions, from one query to every option; the order in which to read them:

======================  =====================================================================
``selfish``             one query, then a batch: the smallest form
``steps``               the plain path: every step of the formula, kept
``masks``               who may attend to whom, as rules that combine
``dot_product``         the public function with every option, by the fast path
``call``, ``checks``    the arguments of one call, checked and brought to one form
``fast``                the fast path: which kernel for which case, decided here alone
``decode``              a few queries over a long cache: when, and the call
``three_products``      short texts: three operations of torch
``tiles``               whole texts, causal or in a window: when, and the call
``tile_function``       the same as a function of autograd, for training
``tile_gradients``      its gradient
``sinks``               a logit for each head that joins the softmax's denominator
``flash``, ``blocks``   everything else: torch's flash kernel, in blocks of queries
``kernels/``            ``decode`` and ``tiles``, as numba compiles them
``soundness``           NaN is refused
``observers``           how ``watch`` learns of a call
``sinusoidal``          position as waves (Vaswani et al. 2017)
``rotary``              position as rotation (Su et al. 2021), with its long-context scalings
``alibi``               position as a slope (Press et al. 2022)
``relative``            position as learned buckets (Raffel et al. 2020)
``cache``               keys and values of the past: the KV cache
======================  =====================================================================
"""

from typing import TYPE_CHECKING

from clearhead.lazy import lazy

if TYPE_CHECKING:
    from clearhead.attention.cache import KVCache as KVCache
    from clearhead.attention.cache import SlidingKVCache as SlidingKVCache
    from clearhead.attention.dot_product import attention as attention
    from clearhead.attention.masks import Mask as Mask
    from clearhead.attention.selfish import selfish_attention as selfish_attention
    from clearhead.attention.steps import AttentionSteps as AttentionSteps
    from clearhead.attention.steps import attention_steps as attention_steps

_HOMES = {
    "AttentionSteps": "clearhead.attention.steps",
    "KVCache": "clearhead.attention.cache",
    "Mask": "clearhead.attention.masks",
    "SlidingKVCache": "clearhead.attention.cache",
    "attention": "clearhead.attention.dot_product",
    "attention_steps": "clearhead.attention.steps",
    "selfish_attention": "clearhead.attention.selfish",
}
__all__ = list(_HOMES)
__getattr__, __dir__ = lazy(__name__, _HOMES)
