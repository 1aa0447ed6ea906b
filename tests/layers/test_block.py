from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from clearhead.attention.cache import KVCache
from clearhead.layers.block import Block, NormPlace, Residual
from clearhead.layers.feed_forward import FeedForward
from clearhead.layers.multi_head import MultiHeadAttention


def layer_norm() -> nn.Module:
    norm = nn.LayerNorm(10)
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    return norm


def made(place: NormPlace, *, cross: bool = False, **options: Any) -> Block:
    torch.manual_seed(5)
    context = MultiHeadAttention(10, 2, context=6) if cross else None
    attention = MultiHeadAttention(10, 5, causal=True)
    forward = FeedForward(10, 7, "relu", gated=False, bias=True)
    return Block(attention, forward, layer_norm, place, cross_attention=context, **options).eval()


@pytest.mark.parametrize(
    ("place", "before", "after"),
    [("before", True, False), ("after", False, True), ("around", True, True)],
)
def test_where_the_norms_are(place: NormPlace, before: bool, after: bool) -> None:
    residual = Residual(layer_norm, place)
    assert (residual.before is not None, residual.after is not None) == (before, after)


def test_residual_by_hand() -> None:
    """With a norm that adds 1 and a layer that multiplies by 10."""

    class AddOne(nn.Module):
        def forward(self, states: Tensor) -> Tensor:
            return states + 1

    def ten(states: Tensor) -> Tensor:
        return states * 10

    states = torch.tensor([2.0])
    results = {
        "before": 2.0 + 10 * 3.0,
        "after": 2.0 + 10 * 2.0 + 1,
        "around": 2.0 + (10 * 3.0 + 1),
    }
    for place, wanted in results.items():
        assert Residual(AddOne, place)(states, ten).item() == wanted  # type: ignore[arg-type]


def test_pre_norm_is_the_papers_sum() -> None:
    block, states = made("before"), torch.randn(3, 7, 10)
    attended = states + block.attention(block.attention_residual.before(states))  # type: ignore[misc]
    wanted = attended + block.feed_forward(block.feed_forward_residual.before(attended))  # type: ignore[misc]
    torch.testing.assert_close(block(states, {}), wanted)


def test_post_norm_with_cross_attention() -> None:
    block = made("after", cross=True)
    assert block.cross_attention is not None
    states, context = torch.randn(3, 7, 10), torch.randn(3, 11, 6)
    first = block.attention_residual.after(states + block.attention(states))  # type: ignore[misc]
    crossed = block.cross_residual.after(first + block.cross_attention(first, context))  # type: ignore[misc]
    wanted = block.feed_forward_residual.after(crossed + block.feed_forward(crossed))  # type: ignore[misc]
    torch.testing.assert_close(block(states, {}, context), wanted)


def test_options_reach_their_attention() -> None:
    block = made("before", cross=True)
    states, context = torch.randn(2, 7, 10), torch.randn(2, 11, 6)
    seen = torch.ones(7, 11).bool()
    seen[:, 5:] = False
    narrowed = block(states, {}, context, {"mask": seen})
    torch.testing.assert_close(narrowed, block(states, {}, context[:, :5]))
    cache, cross_cache = KVCache(), KVCache()
    parts = [
        block(states[:, :4], {"cache": cache}, context, {"cache": cross_cache}),
        block(states[:, 4:], {"cache": cache}, None, {"cache": cross_cache}),
    ]
    torch.testing.assert_close(torch.cat(parts, dim=1), block(states, {}, context))
    assert (cache.length, cross_cache.length) == (7, 11)


def test_dropout_only_in_training() -> None:
    block, states = made("before", dropout=0.5), torch.randn(2, 7, 10)
    torch.testing.assert_close(block(states, {}), block(states, {}))
    torch.testing.assert_close(block(states, {}), made("before")(states, {}))
    block.train()
    assert not torch.allclose(block(states, {}), block(states, {}))


@pytest.mark.parametrize("place", ["before", "after", "around"])
def test_gradient_reaches_everything(place: NormPlace) -> None:
    block = made(place, cross=True)
    block(torch.randn(2, 7, 10), {}, torch.randn(2, 11, 6)).square().sum().backward()
    assert all(
        parameter.grad is not None and parameter.grad.any() for parameter in block.parameters()
    )
