"""Conversion between ``nn.MultiheadAttention`` and :class:`MultiHeadAttention`, weights and all."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from clearhead.arguments import flag
from clearhead.errors import ConfigError
from clearhead.layers.multi_head import MultiHeadAttention


def from_torch(module: nn.MultiheadAttention, *, cross: bool = False) -> MultiHeadAttention:
    """Our module with the same weights: the same numbers for the same states.

    ``cross`` says that it attends to a context. torch's module shows that only when the context has
    another width.
    ``add_zero_attn``, a key and a value of zeros, becomes a sink of 0 for each head: the same sum.
    Mind the masks: ``nn.MultiheadAttention`` marks with True what may NOT be attended to.

    Args:
        module: torch's module; its weights are copied.
        cross: whether it is used for cross-attention.

    Returns:
        A :class:`MultiHeadAttention` in the same mode (training or not), type and device.

    Raises:
        ConfigError: for ``add_bias_kv``, or keys and values of different widths.

    >>> theirs = nn.MultiheadAttention(12, 3, batch_first=True).eval()
    >>> ours, states = from_torch(theirs), torch.randn(2, 5, 12)
    >>> torch.allclose(ours(states), theirs(states, states, states)[0], atol=1e-6)
    True
    """
    cross = flag("cross", cross, error=ConfigError)
    if not isinstance(module, nn.MultiheadAttention):
        raise ConfigError(f"module must be an nn.MultiheadAttention; got {type(module).__name__}.")
    if module.bias_k is not None:
        raise ConfigError(
            "nn.MultiheadAttention with add_bias_kv has a key and a value that no token made; "
            "there is no place for them here.",
            hint="ch.watch looks into torch's own module as it is.",
        )
    if module.kdim != module.vdim:
        raise ConfigError(
            f"keys and values must come from one context; got kdim {module.kdim} and vdim "
            f"{module.vdim}."
        )
    crossing = module.kdim if cross or not module._qkv_same_embed_dim else None
    ours = MultiHeadAttention(
        module.embed_dim,
        module.num_heads,
        context=crossing,
        bias=module.in_proj_bias is not None,
        dropout=module.dropout,
        sinks=module.add_zero_attn,
    ).to(module.out_proj.weight)
    if ours.sinks is not None:  # torch's key of zeros is not learned
        ours.sinks.requires_grad_(False)
    with torch.no_grad():
        for linear, weight, bias in zip(
            (ours.query, ours.key, ours.value), _weights(module), _biases(module), strict=True
        ):
            linear.weight.copy_(weight)
            if bias is not None:
                linear.bias.copy_(bias)
        ours.output.load_state_dict(module.out_proj.state_dict())
    return ours.train(module.training)


def to_torch(module: MultiHeadAttention) -> nn.MultiheadAttention:
    """``nn.MultiheadAttention`` (batch first) with the same weights, where it can express them.

    A causal module's mask does not come along: torch wants it at every call, as ``attn_mask``.

    Args:
        module: ours; its weights are copied.

    Returns:
        torch's module in the same mode, type and device.

    Raises:
        ConfigError: if torch's module cannot express it: grouped heads, widths m ≠ l, rotary
            positions, softcap, sinks, a window, a scale, an activation or norms.

    >>> to_torch(MultiHeadAttention(12, 3)).num_heads
    3
    """
    if not isinstance(module, MultiHeadAttention):
        raise ConfigError(
            f"module must be a clearhead.MultiHeadAttention; got {type(module).__name__}."
        )
    model = module.query.in_features
    plain = (module.kv_heads == module.heads and module.heads * module.key_dim == model
             and module.value_dim == module.key_dim)  # fmt: skip
    zeros = module.sinks is not None and not module.sinks.requires_grad and not module.sinks.any()
    extras = (module.activation, module.query_norm, module.rotary, module.softcap,
              None if zeros else module.sinks, module.window, module.scale)  # fmt: skip
    if not plain or any(extra is not None for extra in extras):
        raise ConfigError(
            "nn.MultiheadAttention has one head width, model / heads, for queries, keys and "
            "values, and none of: grouped heads, activation, norm, rotary, softcap, sinks, window, "
            "scale."
        )
    if (module.query.bias is None) != (module.output.bias is None):
        raise ConfigError("nn.MultiheadAttention has biases on all projections or on none.")
    source = module.key.in_features if module.crossing else None
    theirs = nn.MultiheadAttention(
        model, module.heads, dropout=module.dropout, bias=module.query.bias is not None,
        kdim=source, vdim=source, batch_first=True, add_zero_attn=zeros,
    ).to(module.output.weight)  # fmt: skip
    with torch.no_grad():
        linears = (module.query, module.key, module.value)
        for target, linear in zip(_weights(theirs), linears, strict=True):
            target.copy_(linear.weight)
        for bias, linear in zip(_biases(theirs), linears, strict=True):
            if bias is not None:
                bias.copy_(linear.bias)
        theirs.out_proj.load_state_dict(module.output.state_dict())
    return theirs.train(module.training)


def _weights(module: nn.MultiheadAttention) -> tuple[Tensor, ...]:
    """The three projections, as views of torch's joint matrix or as its separate ones."""
    if module._qkv_same_embed_dim:
        assert module.in_proj_weight is not None
        return module.in_proj_weight.chunk(3)
    separate = (module.q_proj_weight, module.k_proj_weight, module.v_proj_weight)
    return tuple(weight for weight in separate if weight is not None)


def _biases(module: nn.MultiheadAttention) -> tuple[Tensor | None, ...]:
    if module.in_proj_bias is None:
        return (None, None, None)
    return module.in_proj_bias.chunk(3)
