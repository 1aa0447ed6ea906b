"""torch's own modules with attention."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from watched.events import attention_of
from watched.subject import Made, Subject, called

WIDTH, HEADS = 48, 6


class Fused(nn.Module):
    """scaled_dot_product_attention, or flex_attention, between projections."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """Causal self-attention."""
        query, key, value = self.project(x)
        if self.way == "sdpa":
            mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        else:
            mixed = _flexed(query, key, value)
        return self.out(mixed.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]

    def project(self, x: Tensor) -> list[Tensor]:
        """Queries, keys and values, (batch, head, token, width)."""
        shape = (*x.shape[:2], HEADS, -1)
        return [part.view(shape).transpose(1, 2) for part in self.qkv(x).chunk(3, -1)]

    def weights(self, x: Tensor) -> list[Tensor]:
        """What flex_attention does not give: no mode can be on while it runs."""
        query, key, _ = (part.double() for part in self.project(x))
        scores = query @ key.transpose(2, 3) * query.shape[-1] ** -0.5
        hidden = torch.ones(scores.shape[2:], dtype=torch.bool).triu(1)
        return [torch.softmax(scores.masked_fill(hidden, -torch.inf), dim=-1)]


def _flexed(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    from torch.nn.attention.flex_attention import flex_attention

    def causal(score: Tensor, _b: Tensor, _h: Tensor, row: Tensor, column: Tensor) -> Tensor:
        return torch.where(column <= row, score, -torch.inf)

    mixed = flex_attention(query, key, value, score_mod=causal)
    assert isinstance(mixed, Tensor)
    return mixed


def subjects() -> Iterator[Subject]:
    """nn.MultiheadAttention, the layers around it, and the functions inside it."""
    makers: dict[tuple[str, str], Any] = {
        ("nn.MultiheadAttention", "fast path"): _multi_head,
        ("nn.MultiheadAttention", "need_weights"): lambda: _multi_head(need_weights=True),
        ("nn.MultiheadAttention", "cross"): _cross,
        ("nn.TransformerEncoderLayer", "fast path"): _encoder_layer,
        ("nn.TransformerEncoderLayer", "train"): lambda: _encoder_layer(train=True),
        ("nn.TransformerEncoder", "fast path"): _encoder,
        ("nn.TransformerDecoder", "ordinary"): _decoder,
        ("nn.Transformer", "ordinary"): _whole,
        ("F.scaled_dot_product_attention", "flash"): lambda: _fused("sdpa"),
        ("flex_attention", "not compiled"): lambda: _fused("flex"),
    }
    for (family, implementation), maker in makers.items():
        yield Subject("torch", family, implementation, maker)


def _x(length: int = 13) -> Tensor:
    torch.manual_seed(length)
    return torch.randn(2, length, WIDTH)


def _multi_head(need_weights: bool = False) -> Made:
    x = _x()
    layer = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
    return called(layer, x, x, x, need_weights=need_weights)


def _cross() -> Made:
    layer = nn.MultiheadAttention(WIDTH, HEADS, kdim=WIDTH, vdim=WIDTH, batch_first=True)
    return called(layer, _x(7), _x(), _x(), need_weights=False)


def _layer(kind: Any) -> Any:
    return kind(WIDTH, HEADS, 40, batch_first=True)


def _encoder_layer(train: bool = False) -> Made:
    made = called(_layer(nn.TransformerEncoderLayer), _x())
    made.model.train(train)
    return made


def _encoder() -> Made:
    padding = torch.zeros(2, 13, dtype=torch.bool)
    padding[1, 10:] = True
    encoder = nn.TransformerEncoder(_layer(nn.TransformerEncoderLayer), 2)
    made = called(encoder, _x(), src_key_padding_mask=padding)

    def weights() -> list[Tensor]:
        """Its fast path packs the batch: rows at padding do not run."""
        with attention_of(encoder) as found:
            made.run()
        return [event.weights * ~padding[:, None, :, None] for event in found.events]

    return replace(made, weights=weights)


def _decoder() -> Made:
    mask = nn.Transformer.generate_square_subsequent_mask(7)
    decoder = nn.TransformerDecoder(_layer(nn.TransformerDecoderLayer), 2)
    return called(decoder, _x(7), _x(), tgt_mask=mask, tgt_is_causal=True)


def _whole() -> Made:
    return called(nn.Transformer(WIDTH, HEADS, 2, 2, 40, batch_first=True), _x(), _x(7))


def _fused(way: str) -> Made:
    module, x = Fused(way), _x()
    made = called(module, x)
    return made if way == "sdpa" else replace(made, weights=lambda: module.weights(x))
