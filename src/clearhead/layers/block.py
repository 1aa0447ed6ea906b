"""One block of a transformer: attention, cross-attention if any, feed-forward, with residuals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from jaxtyping import Float
from torch import Tensor, nn

from clearhead.layers.dropout import drop
from clearhead.layers.feed_forward import FeedForward
from clearhead.layers.multi_head import MultiHeadAttention

NormPlace: TypeAlias = Literal["before", "after", "around"]


class Residual(nn.Module):
    """A layer inside its residual, with normalisation

    - ``before`` it: x + layer(norm(x))              pre-norm: GPT-2, Llama, T5
    - ``after`` the sum: norm(x + layer(x))          post-norm: the paper, BERT, BART
    - ``around`` it: x + norm(layer(norm(x)))        sandwich: Gemma 2 and 3
    """

    def __init__(
        self, norm: Callable[[], nn.Module], place: NormPlace, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.place, self.dropout = place, dropout
        self.before = norm() if place != "after" else None
        self.after = norm() if place != "before" else None

    def forward(self, states: Tensor, layer: Callable[..., Tensor], *args: Any) -> Tensor:
        """States with what the layer adds to them."""
        added = layer(states if self.before is None else self.before(states), *args)
        added = drop(added, self.dropout, self.training)
        if self.place == "after":
            assert self.after is not None
            return self.after(states + added)  # type: ignore[no-any-return]
        return states + (added if self.after is None else self.after(added))


class Block(nn.Module):
    """Self-attention, cross-attention if there is any, feed-forward."""

    def __init__(
        self,
        attention: MultiHeadAttention,
        feed_forward: FeedForward,
        norm: Callable[[], nn.Module],
        place: NormPlace,
        *,
        cross_attention: MultiHeadAttention | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.attention, self.attention_residual = attention, Residual(norm, place, dropout)
        self.cross_attention = cross_attention
        if cross_attention is not None:
            self.cross_residual = Residual(norm, place, dropout)
        self.feed_forward, self.feed_forward_residual = feed_forward, Residual(norm, place, dropout)

    def forward(
        self,
        states: Float[Tensor, "batch query model"],
        self_options: dict[str, Any],
        context: Float[Tensor, "source_batch key context"] | None = None,
        cross_options: dict[str, Any] | None = None,
    ) -> Float[Tensor, "batch query model"]:
        """States in, states out; the options go to the attention modules (mask, bias, cache …)."""

        def attend(normed: Tensor) -> Tensor:
            return self.attention(normed, **self_options)  # type: ignore[no-any-return]

        def cross(normed: Tensor) -> Tensor:
            assert self.cross_attention is not None
            return self.cross_attention(normed, context, **(cross_options or {}))  # type: ignore[no-any-return]

        states = self.attention_residual(states, attend)
        if self.cross_attention is not None:
            states = self.cross_residual(states, cross)
        return self.feed_forward_residual(states, self.feed_forward)  # type: ignore[no-any-return]
