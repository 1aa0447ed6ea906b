"""The public function: attention with every option, by the fast path."""

from __future__ import annotations

import sys
from math import isfinite

from torch import Tensor

from clearhead.attention.call import attention_call
from clearhead.attention.fast import fast_output, lean_output
from clearhead.attention.masks import Mask
from clearhead.attention.observers import OBSERVERS
from clearhead.attention.soundness import refuse_nan


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

    Raises:
        ShapeError: if axes do not fit; the error names the argument and the axis.
        InputError: if an argument has a wrong type or value, or holds NaN (checked on a CPU, where
            the check costs little).

    Order of steps: score, scale, softcap, bias, mask, softmax. :func:`attention_steps` takes the
    same arguments and returns all of them.

    >>> import torch
    >>> query, key = torch.tensor([[2.0, 0.0, -1.0]]), torch.eye(3)
    >>> attention(query, key, value=key, scale=1.0)
    tensor([[0.8438, 0.1142, 0.0420]])
    >>> grouped, values = torch.zeros(2, 7, 64), torch.zeros(2, 7, 32)  # 2 key/value heads
    >>> attention(torch.zeros(8, 5, 64), grouped, values).shape
    torch.Size([8, 5, 32])
    """
    plain = mask is None and bias is None and window is None and softcap is None and sinks is None
    sound = type(causal) is bool and (scale is None or (type(scale) is float and isfinite(scale)))
    if plain and sound and not OBSERVERS.watching:
        lean = lean_output(query, key, value, scale, causal)
        if lean is not None:
            return lean
    call = attention_call(query, key, value, mask, bias, causal, window, scale, softcap, sinks)
    if not OBSERVERS.watching:
        output, logsum = fast_output(call)
        refuse_nan(call, output, logsum)
        return call.unflatten(output)
    with OBSERVERS.reported():
        output, logsum = fast_output(call)
    refuse_nan(call, output, logsum)
    OBSERVERS.notify(call, output, logsum)
    return call.unflatten(output)


# The function and its folder share a name, and ``clearhead.attention`` is the function. It shows
# the folder's modules as well, so that ``import clearhead.attention.fast as fast`` finds them.
attention.__dict__ = vars(sys.modules["clearhead.attention"])
