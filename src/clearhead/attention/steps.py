"""The plain path: attention exactly as the formula says, every step kept.

    scores  = query · keyᵀ
    scaled  = scores · scale                    (the paper's score/√d)
    capped  = softcap · tanh(scaled / softcap)  (only with a softcap)
    biased  = capped + bias                     (only with a bias)
    masked  = biased, −∞ where the mask says no
    weights = softmax(masked)                   (sinks join the denominator)
    output  = weights · value

These are the columns of the textbook's table. This path is the reference for the fast one and
costs memory for the whole (query × key) map.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from clearhead.attention.call import Call, attention_call
from clearhead.attention.checks import map_shape
from clearhead.attention.masks import Mask
from clearhead.attention.soundness import refuse_nan


@dataclass(frozen=True)
class AttentionSteps:
    """Every column of the table, for all heads and queries at once; q, k and v as they came."""

    scores: Float[Tensor, "*head query key"]
    scaled: Float[Tensor, "*head query key"]
    capped: Float[Tensor, "*head query key"] | None
    biased: Float[Tensor, "*head query key"] | None
    masked: Float[Tensor, "*head query key"]
    weights: Float[Tensor, "*head query key"]
    output: Float[Tensor, "*head query value_dim"]
    value: Float[Tensor, "*head key value_dim"]
    scale: float
    query: Float[Tensor, "*head query key_dim"]
    key: Float[Tensor, "*head key key_dim"]

    @cached_property
    def weighted(self) -> Float[Tensor, "*head query key value_dim"]:
        """softmax · v for each key; their sum over the keys is the output."""
        return self.weights.unsqueeze(-1) * self.value.unsqueeze(-3)


def attention_steps(
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
) -> AttentionSteps:
    """Compute attention step by step and keep every step.

    Args:
        query, key, value, mask, bias, causal, window, scale, softcap, sinks: as in
            :func:`clearhead.attention`.

    Returns:
        The columns of the textbook's table: ``scores``, ``scaled``, ``capped``, ``biased``,
        ``masked``, ``weights``, ``weighted`` and ``output``. It takes memory for the whole map.

    Raises:
        ShapeError, InputError: as :func:`clearhead.attention`.

    >>> import torch
    >>> keys = torch.tensor([[1.0, 0.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]])
    >>> steps = attention_steps(torch.tensor([[2.0, 0.0, -1.0]]), keys, keys, scale=1.0)
    >>> steps.scores.tolist()
    [[1.0, 3.0, -2.0, -3.0]]
    >>> steps.weights
    tensor([[0.1182, 0.8737, 0.0059, 0.0022]])
    """
    call = attention_call(query, key, value, mask, bias, causal, window, scale, softcap, sinks)
    steps = steps_of(call)
    refuse_nan(call, steps.output)
    return steps


def steps_of(call: Call) -> AttentionSteps:
    """The steps of a checked call. Half precision is computed in float32 and rounded at the end."""
    dtype = call.query.dtype
    wide = torch.promote_types(dtype, torch.float32)
    query = call.query.to(wide)
    key = _for_each_head(call.key.to(wide), call.group)  # (batch, head, key, key_dim)
    value = _for_each_head(call.value.to(wide), call.group)

    scores = query @ key.transpose(-1, -2)  # (batch, head, query, key)
    scaled = scores * call.scale
    capped = None if call.softcap is None else call.softcap * torch.tanh(scaled / call.softcap)
    before_bias = scaled if capped is None else capped
    biased = None if call.bias is None else before_bias + call.bias.to(wide)
    before_mask = before_bias if biased is None else biased
    masked = _hide(before_mask, call)
    weights = _softmax(masked, call.sinks)
    output = weights @ value  # (batch, head, query, value_dim)

    def given(result: Tensor) -> Tensor:
        return call.unflatten(result.to(dtype))

    return AttentionSteps(
        scores=given(scores),
        scaled=given(scaled),
        capped=None if capped is None else given(capped),
        biased=None if biased is None else given(biased),
        masked=given(masked),
        weights=given(weights),
        output=given(output),
        value=given(value),
        scale=call.scale,
        query=given(query),
        key=given(key),
    )


def _for_each_head(shared: Tensor, group: int) -> Tensor:
    """Keys or values of a group's head, once for each query head of the group."""
    return shared if group == 1 else shared.repeat_interleave(group, dim=1)


def _hide(scores: Tensor, call: Call) -> Tensor:
    """−∞ wherever the mask says no."""
    if call.mask is None:
        return scores
    seen = call.mask.tensor(scores.shape[-2], scores.shape[-1], scores.device)
    map_shape("mask", seen, tuple(scores.shape))
    return scores.masked_fill(~seen, -torch.inf)


def _softmax(masked: Tensor, sinks: Tensor | None) -> Tensor:
    """Softmax over the keys. A query that sees nothing gets zeros, forward and backward."""
    if sinks is not None:
        sink = sinks.to(masked.dtype)[:, None, None].expand(*masked.shape[:-1], 1)
        return torch.softmax(torch.cat([masked, sink], dim=-1), dim=-1)[..., :-1]
    blind = masked.isneginf().all(dim=-1, keepdim=True)
    # softmax of nothing but −∞ is NaN, and so is its gradient: give it a harmless row instead.
    return torch.softmax(masked.masked_fill(blind, 0.0), dim=-1).masked_fill(blind, 0.0)
