"""The public function: attention with every option, by the fast path."""

from __future__ import annotations

from torch import Tensor

from clearhead.attention.call import attention_call
from clearhead.attention.decode import decode_step
from clearhead.attention.fast import fast_output
from clearhead.attention.masks import Mask
from clearhead.attention.observers import OBSERVERS
from clearhead.attention.soundness import refuse_nan
from clearhead.attention.three_products import short_attention


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    mask: Mask | Tensor | None = None,
    bias: Tensor | None = None,
    causal: bool = False,
    window: int | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    sinks: Tensor | None = None,
) -> Tensor:
    """softmax(query · keyᵀ · scale) · value (Vaswani et al. 2017, equation 1), with options.

    Args:
        query: (…, head, query, key_dim); any leading axes, or just (query, key_dim).
        key: (…, kv_head, key, key_dim). Query heads may be a multiple of the key/value heads
            (grouped heads): query head h uses key/value head h // (head / kv_head).
        value: (…, kv_head, key, value_dim); value_dim may differ from key_dim.
        mask: True = may attend (the opposite of ``nn.MultiheadAttention``): a boolean tensor
            broadcastable to (…, head, query, key), or a rule from ``clearhead.attention.masks``.
        bias: added to the scaled scores; broadcastable to (…, head, query, key).
        causal: no looking ahead, aligned to the END: the last query sees every key.
        window: a query sees at most so many keys, its own included: the last ones up to its own if
            causal, otherwise window // 2 before and (window − 1) // 2 after its own.
        scale: of the scores; 1/√key_dim unless given.
        softcap: c · tanh(score / c) instead of the scaled score.
        sinks: one number for each query head that joins the softmax's denominator and nothing else.

    Returns:
        (…, head, query, value_dim). A query that may attend to nothing gets zeros.

    Order of steps: score, scale, softcap, bias, mask, softmax. :func:`attention_steps` takes the
    same arguments and returns all of them. NaN is refused on a CPU, where looking costs little.
    """
    if (
        mask is None and bias is None and window is None and softcap is None and sinks is None
    ) and not OBSERVERS.watching:
        step = decode_step(query, key, value, scale)
        if step is None:
            step = short_attention(query, key, value, scale, causal)
        if step is not None:
            return step
    call = attention_call(query, key, value, mask, bias, causal, window, scale, softcap, sinks)
    output, logsum = fast_output(call)
    refuse_nan(call, output, logsum)
    if OBSERVERS.watching:
        OBSERVERS.tell(call, output, logsum)
    return call.unflatten(output)
