"""The fast path of ``nn.MultiheadAttention`` and ``nn.TransformerEncoderLayer``.

In eval mode without gradients torch computes the whole layer as one operation, which gives neither
queries nor keys. It runs as it is; queries, keys and values are projected once more beside it, from
the operation's own input and weights, in the precision that autocast chose. The attention that they
give is taken through the last projection, and must arrive at what the operation returned: otherwise
the call is refused.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from clearhead.trace.watching.observed_call import ObservedCall
from clearhead.trace.watching.watchers import notify, refuse

TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4}
_CAUSAL, _PADDING = 0, 1  # kinds of masks, as torch numbers them


class encoder_layer:  # noqa: N801 - a context manager
    """Attention that runs in the block is that of an ``nn.TransformerEncoderLayer``, whose kernel
    calls that of ``nn.MultiheadAttention``."""

    def __enter__(self) -> encoder_layer:
        self.attended = False
        self._token = _LAYER.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _LAYER.reset(self._token)


_LAYER: ContextVar[encoder_layer | None] = ContextVar("layer", default=None)


def multi_head_call(given: dict[str, Any], result: Any) -> None:
    """``nn.MultiheadAttention`` on its fast path, or that of a layer."""
    layer, itself = _LAYER.get(), given["key"] is given["query"]
    if layer is not None:
        layer.attended = True
    given, output = _padded(given, result[0], "query", "key", "value")
    query, key, value = (given[name] for name in ("query", "key", "value"))
    observed = _call(given, [query, key, value], given["num_head"])
    if layer is not None:
        observed.inner = "self_attn"
    else:  # mixed precision makes a copy of each
        observed.cross = not itself and not torch.equal(query, key)
    _notify_if_right(observed, _projected(observed, given), output)


def _padded(given: dict[str, Any], result: Tensor, *names: str) -> tuple[dict[str, Any], Tensor]:
    """Rows of different lengths, which torch packs into nested tensors, padded again."""
    if not given[names[0]].is_nested:
        return given, result
    lengths = given[names[0]]._nested_tensor_size()[:, 0]
    padded = {name: torch.nested.to_padded_tensor(given[name], 0.0) for name in names}
    padded_result = torch.nested.to_padded_tensor(result, 0.0)
    places = torch.arange(padded[names[0]].shape[1])
    padding = places >= lengths[:, None]
    more = {"mask": padding, "mask_type": _PADDING, "real_rows": ~padding}
    return given | padded | more, padded_result


def _call(given: dict[str, Any], parts: list[Tensor], heads: int) -> ObservedCall:
    """Queries, keys and values as the operation projects them; the output as they give it."""
    weights, biases = given["qkv_weight"].chunk(3), given["qkv_bias"].chunk(3)
    query, key, value = (
        functional.linear(part, weight, bias).unflatten(-1, (heads, -1)).transpose(1, 2)  # type: ignore[no-untyped-call]
        for part, weight, bias in zip(parts, weights, biases, strict=True)
    )
    mask = _visible(given.get("mask"), given.get("mask_type"))
    if mask is not None and "real_rows" in given:  # rows that the packed tensor does not have
        mask = mask & given["real_rows"][:, None, :, None]
    output = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    return ObservedCall(
        query,
        key,
        value,
        scale=query.shape[-1] ** -0.5,
        output=output,
        mask=mask,
    )


def _visible(mask: Tensor | None, kind: int | None) -> Tensor | None:
    """torch's mask (True = may not attend), with four axes and our meaning."""
    if mask is None:
        return None
    hidden = mask.bool()
    if kind == _CAUSAL and hidden.ndim == 2:
        hidden = hidden[None, None]
    elif kind == _PADDING and hidden.ndim == 2:
        hidden = hidden[:, None, None]
    return ~hidden


def _projected(observed: ObservedCall, given: dict[str, Any]) -> Tensor:
    assert observed.output is not None
    joined = observed.output.transpose(1, 2).flatten(2)
    return functional.linear(joined, given["proj_weight"], given["proj_bias"])


def _notify_if_right(observed: ObservedCall, ours: Tensor, theirs: Tensor) -> None:
    """Rows at padding do not count: the fast path computes nothing for them."""
    limit = TOLERANCE.get(theirs.dtype, 5e-2) * max(1.0, float(theirs.abs().nan_to_num().max()))
    real = theirs.ne(0).any(dim=-1)
    wrong = ((ours - theirs).abs().amax(dim=-1) > limit) & real  # NaN counts as right: a blind row
    if bool(wrong.any()):
        refuse("torch's fast path computed something that its weights do not explain")
        return
    notify(observed)
