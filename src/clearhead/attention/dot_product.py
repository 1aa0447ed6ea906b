"""The public function: attention with every option, by the fast path."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from clearhead.attention.call import CAUSAL, Call, attention_call
from clearhead.attention.decode import decode_step
from clearhead.attention.fast import fast_output
from clearhead.attention.masks import Mask
from clearhead.attention.observers import OBSERVERS
from clearhead.errors import InputError

# With fewer keys than a vector register holds, torch's flash kernel gives zeros for a NaN query
# (seen below 8 keys with AVX2, below 16 with AVX-512).
HIDES_NAN = 16


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
        if step is not None:
            return step
    call = attention_call(query, key, value, mask, bias, causal, window, scale, softcap, sinks)
    output, logsum = fast_output(call)
    if output.device.type == "cpu" and not torch.compiler.is_compiling():
        if torch.is_grad_enabled():
            with torch.no_grad():
                _refuse_nan(call, output, logsum)
        else:
            _refuse_nan(call, output, logsum)
    if OBSERVERS.watching:
        OBSERVERS.tell(call, output, logsum)
    return call.unflatten(output)


def _refuse_nan(call: Call, output: Tensor, logsum: Tensor | None) -> None:
    """NaN shows in the output, or, where the kernel takes a NaN query for one that sees nothing,
    as a log-sum-exp of 0. Only then are the arguments searched."""
    kernel_masks = call.mask is None or call.mask is CAUSAL  # of its own, block by block
    if logsum is not None and kernel_masks and _last_row_is_sound(output, logsum):
        shown = False
    else:
        shown = math.isnan(output.sum().item())
    if logsum is not None and (call.key.shape[2] < HIDES_NAN or not kernel_masks):
        shown = shown or not logsum.all().item()
    if not shown:
        return
    names = ("query", "key", "value", "bias", "sinks")
    for name in names:
        tensor = getattr(call, name)
        if tensor is not None and math.isnan(tensor.sum().item()) and tensor.isnan().any():
            place = tuple(tensor.isnan().nonzero()[0].tolist())
            raise InputError(
                f"{name} holds NaN (first at {place} of {tuple(tensor.shape)}); every number must "
                "be real.",
                hint="a diverged training run or uninitialised memory (torch.empty)?",
            )
    if output.isnan().any():
        infinite = [name for name in names if _holds_infinity(getattr(call, name))]
        came = f"{' and '.join(infinite)} holds ±inf" if infinite else "the scores overflow"
        raise InputError(
            f"the result is NaN: {came}, and every number must be finite.",
            hint="half precision overflows at 65,504: compute in float32 or bfloat16.",
        )


def _last_row_is_sound(output: Tensor, logsum: Tensor) -> bool:
    """A tenth of looking at the whole output: the last query sees every key and every value, so
    what is wrong with one shows in its row; what is wrong with a query, in its log-sum-exp."""
    return math.isfinite(logsum.sum().item()) and math.isfinite(output.select(2, -1).sum().item())


def _holds_infinity(tensor: Tensor | None) -> bool:
    return tensor is not None and bool(tensor.isinf().any())
