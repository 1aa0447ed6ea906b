"""Multi-head attention: project, attend with every head, concatenate, project back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from clearhead.arguments import flag, whole_number
from clearhead.attention.cache import KVCache
from clearhead.attention.dot_product import attention
from clearhead.attention.masks import Mask
from clearhead.attention.rotary import Rotary, Rotation, rotate
from clearhead.attention.steps import attention_steps
from clearhead.errors import ConfigError, InputError
from clearhead.layers.attention_checks import (
    a_width,
    check_call,
    check_options,
    check_rows,
    checked_numbers,
    head_norm,
    head_width,
)
from clearhead.layers.dropout import drop
from clearhead.layers.linear import Linear
from clearhead.layers.ragged import Ragged


class HeadWeights(NamedTuple):
    """The matrices of one head, named and shaped as in the textbook (states · W)."""

    query: Float[Tensor, "model key_dim"]
    key: Float[Tensor, "model key_dim"]
    value: Float[Tensor, "model value_dim"]
    output: Float[Tensor, "value_dim model"]


class _Visible(NamedTuple):
    """Which keys each query may attend to, as arguments of :func:`attention`."""

    mask: Mask | Tensor | None
    causal: bool
    window: int | None


class MultiHeadAttention(nn.Module):
    """T heads, each with projections of its own (Vaswani et al. 2017, section 3.2.2).

        head_t = attention(f(c·W_q), f(c·W_k), f(c·W_v))      for t = 1 … T
        output = concatenate(head_1 … head_T) · W_O

    For each head W_q and W_k are d×m, W_v is d×l; W_O is T·l×d. That makes
    d·(2m + l)·T + T·l·d parameters, plus biases. With fewer key/value heads than query heads
    (grouped heads, Ainslie et al. 2023) W_k and W_v exist once for each of those.

    Args:
        model: d, the width of the states.
        heads: T, how many query heads.
        kv_heads: how many key/value heads; as many as query heads unless given.
        key_dim: m; model / heads unless given.
        value_dim: l; the same as key_dim unless given.
        context: width of the states that keys and values come from, for cross-attention. Without
            it the module is self-attention.
        bias: whether W_q, W_k, W_v carry biases; ``output_bias`` the same for W_O (as ``bias``).
        activation: f on the projections, q = f(W_q(c + p)); none unless given.
        norm: makes the normalisation of each head's queries and keys, called with its width.
        rotary: rotates queries and keys by their position.
        dropout: share of weights dropped in training, which needs the plain path.
        causal, window, scale, softcap: as in :func:`clearhead.attention`.
        sinks: learn one sink for each head.

    Raises:
        ConfigError: if the widths do not fit each other, or options contradict each other.

    >>> layer = MultiHeadAttention(512, 8)
    >>> layer(torch.zeros(2, 5, 512)).shape
    torch.Size([2, 5, 512])
    >>> layer.parameter_count == 512 * (2 * 64 + 64) * 8 + 8 * 64 * 512
    True
    """

    def __init__(
        self,
        model: int,
        heads: int,
        *,
        kv_heads: int | None = None,
        key_dim: int | None = None,
        value_dim: int | None = None,
        context: int | None = None,
        bias: bool = False,
        output_bias: bool | None = None,
        activation: Callable[[Tensor], Tensor] | None = None,
        norm: Callable[[int], nn.Module] | None = None,
        rotary: Rotary | None = None,
        dropout: float = 0.0,
        causal: bool = False,
        window: int | None = None,
        scale: float | None = None,
        softcap: float | None = None,
        sinks: bool = False,
    ) -> None:
        super().__init__()
        model, heads = a_width("model", model), a_width("heads", heads)
        kv_heads, key_dim, value_dim, context = (
            None if width is None else a_width(name, width)
            for name, width in (("kv_heads", kv_heads), ("key_dim", key_dim),
                                ("value_dim", value_dim), ("context", context))
        )  # fmt: skip
        bias, causal, sinks = (
            flag(name, given, error=ConfigError)
            for name, given in (("bias", bias), ("causal", causal), ("sinks", sinks))
        )
        self.heads, self.kv_heads = heads, heads if kv_heads is None else kv_heads
        self.key_dim = head_width(model, heads) if key_dim is None else key_dim
        self.value_dim = self.key_dim if value_dim is None else value_dim
        self.crossing = context is not None
        self.activation, self.rotary, self.causal = activation, rotary, causal
        self.dropout, self.window, self.scale, self.softcap = checked_numbers(
            dropout, window, scale, softcap
        )
        check_options(self, norm)
        source = model if context is None else context
        self.query = Linear(model, heads * self.key_dim, bias=bias)
        self.key = Linear(source, self.kv_heads * self.key_dim, bias=bias)
        self.value = Linear(source, self.kv_heads * self.value_dim, bias=bias)
        output_bias = bias if output_bias is None else flag("output_bias", output_bias)
        self.output = Linear(heads * self.value_dim, model, bias=output_bias)
        self.query_norm = head_norm(norm, self.key_dim)
        self.key_norm = head_norm(norm, self.key_dim)
        self.sinks = nn.Parameter(torch.zeros(heads)) if sinks else None

    def forward(
        self,
        states: Float[Tensor, "batch query model"],
        context: Float[Tensor, "source_batch key context"] | None = None,
        *,
        mask: Mask | Tensor | None = None,
        bias: Tensor | None = None,
        cache: KVCache | None = None,
        counts: Int[Tensor, " batch"] | None = None,
        rotation: Rotation | None = None,
        ragged: Ragged | None = None,
    ) -> Float[Tensor, "batch query model"]:
        """Attend from ``states`` to themselves and the cached past, or to ``context``.

        Cross-attention with a cache projects the context once: later steps leave it out.
        ``counts`` says how many of each row's tokens are real, when rows of a cached batch differ.
        ``rotation`` (cos, sin) saves computing the same rotation in every layer. ``ragged`` says
        that the states are real tokens only, one behind the other, and how they stand in rows.
        """
        check_call(self, states, context, cache, counts)
        check_rows(states, rotation, ragged)
        query, key, value = self._project(states, context, cache, ragged)
        query, key = self._place(query, key, cache, rotation)
        visible = self._visible(mask, cache, counts)
        key, value = self._remember(key, value, cache, counts)
        mixed = self._attend(query, key, value, bias, visible)
        return self._project_back(mixed, ragged)

    def _project(
        self,
        states: Tensor,
        context: Tensor | None,
        cache: KVCache | None,
        ragged: Ragged | None,
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """q, k and v of every head; no k and v where the cache has those of the context already."""
        query = self._split(_rows(self.query(states), ragged), self.heads, self.query_norm)
        if self.crossing and cache is not None and cache.length:
            return query, None, None
        source, ragged = (states, ragged) if context is None else (context, None)
        key = self._split(_rows(self.key(source), ragged), self.kv_heads, self.key_norm)
        value = self._split(_rows(self.value(source), ragged), self.kv_heads, None)
        return query, key, value

    def _place(
        self, query: Tensor, key: Tensor | None, cache: KVCache | None, rotation: Rotation | None
    ) -> tuple[Tensor, Tensor | None]:
        """Queries and keys rotated by their positions, where positions are rotations."""
        if self.rotary is None or key is None:
            return query, key
        if rotation is None:
            dtype = torch.promote_types(query.dtype, torch.float32)
            rotation = self.rotary.at(self._positions(query, cache), dtype)
        pairing = self.rotary.pairing
        return rotate(query, rotation, pairing), rotate(key, rotation, pairing)

    @staticmethod
    def _remember(
        key: Tensor | None, value: Tensor | None, cache: KVCache | None, counts: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """All keys and values that there are now: the cached ones, followed by the new ones."""
        if key is None or value is None:
            assert cache is not None
            return cache.keys, cache.values
        return (key, value) if cache is None else cache.append(key, value, counts)

    def _attend(
        self, query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, visible: _Visible
    ) -> Float[Tensor, "batch head query value_dim"]:
        """Each head's weighted sum of values; with dropout by the plain path."""
        options: dict[str, Any] = {
            "mask": visible.mask, "bias": bias, "causal": visible.causal, "window": visible.window,
            "scale": self.scale, "softcap": self.softcap, "sinks": self.sinks,
        }  # fmt: skip
        if not (self.training and self.dropout):
            return attention(query, key, value, **options)
        steps = attention_steps(query, key, value, **options)
        return drop(steps.weights, self.dropout) @ steps.value

    def _project_back(
        self, mixed: Float[Tensor, "batch head query value_dim"], ragged: Ragged | None
    ) -> Tensor:
        """The heads side by side, times W_O."""
        joined = mixed.transpose(1, 2).flatten(2)
        return self.output(joined if ragged is None else ragged.unpad(joined))  # type: ignore[no-any-return]

    def _visible(
        self, mask: Mask | Tensor | None, cache: KVCache | None, counts: Tensor | None
    ) -> _Visible:
        """Which keys each query may attend to. Call it before the cache grows."""
        if cache is None or self.crossing or (counts is None and not cache.ragged):
            return _Visible(mask, self.causal, self.window)
        behind = cache.mask(self.window)  # rows stand at different positions: not simply the end
        return _Visible(behind if mask is None else behind & mask, False, None)

    def _split(
        self, projected: Float[Tensor, "batch query width"], heads: int, norm: nn.Module | None
    ) -> Float[Tensor, "batch head query head_width"]:
        """The heads side by side, after the activation and normalisation where there are any."""
        if self.activation is not None:
            projected = self._activated(projected)
        apart = projected.view(*projected.shape[:2], heads, projected.shape[2] // heads)
        return (apart if norm is None else norm(apart)).transpose(1, 2)

    def _activated(self, projected: Tensor) -> Tensor:
        assert self.activation is not None
        result = self.activation(projected)
        if not isinstance(result, Tensor) or result.shape != projected.shape:
            raise InputError(
                f"activation must return a tensor of the shape that it gets, "
                f"{tuple(projected.shape)}; got {type(result).__name__}."
            )
        return result

    @staticmethod
    def _positions(
        query: Float[Tensor, "batch head query key_dim"], cache: KVCache | None
    ) -> Tensor:
        if cache is not None:
            return cache.positions(query.shape[2]).to(query.device)
        return torch.arange(query.shape[2], device=query.device)[None]

    def head(self, index: int) -> HeadWeights:
        """W_q, W_k, W_v and W_O of one head, as the textbook multiplies them: states · W."""
        index = whole_number("index (of a head)", index, least=0, most=self.heads - 1)
        shared = index // (self.heads // self.kv_heads)

        def rows(linear: nn.Linear, width: int, number: int) -> Tensor:
            return linear.weight[number * width : (number + 1) * width].T

        columns = slice(index * self.value_dim, (index + 1) * self.value_dim)
        return HeadWeights(
            query=rows(self.query, self.key_dim, index),
            key=rows(self.key, self.key_dim, shared),
            value=rows(self.value, self.value_dim, shared),
            output=self.output.weight[:, columns].T,
        )

    @property
    def parameter_count(self) -> int:
        """The number of parameters, biases included."""
        return sum(parameter.numel() for parameter in self.parameters())

    def extra_repr(self) -> str:
        """Heads, widths and the parameter count."""
        model, source = self.query.in_features, self.key.in_features
        parts = [
            f"{self.heads} heads of key width {self.key_dim} and value width {self.value_dim}",
            f"{self.kv_heads} key/value heads",
            f"cross-attention from {model} to {source}" if self.crossing else "self-attention",
            f"{self.parameter_count:,} parameters",
        ]
        if self.kv_heads == self.heads and not self.crossing:
            biased = self.query.bias is not None or self.output.bias is not None
            more = {
                "biases": biased,
                "norms": self.query_norm is not None,
                "sinks": self.sinks is not None,
            }
            parts[-1] += " = d·(2m + l)·T + T·l·d"
            parts[-1] += "".join(f" + {name}" for name, there in more.items() if there)
        return ", ".join(parts)


def _rows(projected: Tensor, ragged: Ragged | None) -> Float[Tensor, "batch query width"]:
    return projected if ragged is None else ragged.pad(projected)
