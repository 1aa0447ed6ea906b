from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from clearhead.attention import masks
from clearhead.attention.rotary import Rotary
from clearhead.errors import ConfigError
from clearhead.layers.multi_head import MultiHeadAttention
from clearhead.layers.torch_weights import from_torch, to_torch

MODEL, HEADS = 15, 3


pytestmark = pytest.mark.usefixtures("seeded")


def their_layer(dtype: torch.dtype = torch.float32, **options: Any) -> nn.MultiheadAttention:
    """With biases that are not torch's zeros, or a forgotten bias would not show."""
    layer = nn.MultiheadAttention(MODEL, HEADS, batch_first=True, dtype=dtype, **options)
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.3)
    return layer


def close(found: Tensor, wanted: Tensor) -> None:
    tolerance = 1e-13 if wanted.dtype == torch.float64 else 2e-6
    torch.testing.assert_close(found, wanted, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("bias", [False, True])
def test_self_attention_both_ways(bias: bool, dtype: torch.dtype) -> None:
    theirs = their_layer(dtype, bias=bias)
    ours = from_torch(theirs)
    c = torch.randn(2, 5, MODEL, dtype=dtype)
    hidden = torch.rand(5, 5) > 0.6
    hidden.fill_diagonal_(False)
    padded = torch.tensor([[False] * 5, [False, False, False, False, True]])
    for weights in (False, True):
        wanted = theirs(c, c, c, attn_mask=hidden, key_padding_mask=padded, need_weights=weights)[0]
        close(ours(c, mask=masks.padding(~padded) & ~hidden), wanted)
    back = to_torch(ours)
    assert back.batch_first
    close(back(c, c, c, attn_mask=hidden)[0], theirs(c, c, c, attn_mask=hidden)[0])
    for name, parameter in theirs.state_dict().items():
        assert back.state_dict()[name].equal(parameter), name


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_cross_attention_to_another_width_both_ways(dtype: torch.dtype) -> None:
    theirs = their_layer(dtype, kdim=7, vdim=7)
    ours = from_torch(theirs)
    assert ours.crossing and ours.key.in_features == 7
    c = torch.randn(2, 5, MODEL, dtype=dtype)
    context = torch.randn(2, 11, 7, dtype=dtype)
    padded = torch.arange(11) >= torch.tensor([[11], [6]])
    wanted = theirs(c, context, context, key_padding_mask=padded)[0]
    close(ours(c, context, mask=masks.padding(~padded)), wanted)
    close(to_torch(ours)(c, context, context, key_padding_mask=padded)[0], wanted)


def test_cross_attention_to_the_same_width_both_ways() -> None:
    theirs = their_layer()
    ours = from_torch(theirs, cross=True)
    c, context = torch.randn(2, 5, MODEL), torch.randn(2, 11, MODEL)
    wanted = theirs(c, context, context)[0]
    close(ours(c, context), wanted)
    close(to_torch(ours)(c, context, context)[0], wanted)


def test_a_causal_mask_of_opposite_polarity() -> None:
    ours = MultiHeadAttention(MODEL, HEADS, causal=True, bias=True)
    c = torch.randn(2, 5, MODEL)
    hidden = torch.ones(5, 5, dtype=torch.bool).triu(1)  # True: may not
    close(to_torch(ours)(c, c, c, attn_mask=hidden)[0], ours(c))


def test_mode_and_dropout_come_along() -> None:
    theirs = their_layer(dropout=0.25).eval()
    ours = from_torch(theirs)
    assert ours.dropout == 0.25 and not ours.training
    assert from_torch(theirs.train()).training
    back = to_torch(ours)
    assert back.dropout == 0.25 and not back.training


def test_the_weights_are_copies() -> None:
    theirs = their_layer()
    ours = from_torch(theirs)
    before = ours.query.weight.clone()
    nn.init.zeros_(theirs.in_proj_weight)
    assert ours.query.weight.equal(before)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("cross", [False, True])
def test_a_key_of_zeros_is_a_sink(cross: bool, dtype: torch.dtype) -> None:
    theirs = their_layer(dtype, add_zero_attn=True, bias=True)
    ours = from_torch(theirs, cross=cross)
    assert ours.sinks is not None and not ours.sinks.requires_grad
    c = torch.randn(2, 5, MODEL, dtype=dtype)
    context = torch.randn(2, 7, MODEL, dtype=dtype) if cross else c
    hidden = torch.rand(5, context.shape[1]) > 0.5
    hidden[0] = True  # this query sees nothing but the zeros
    for weights in (False, True):
        wanted = theirs(c, context, context, attn_mask=hidden, need_weights=weights)[0]
        close(ours(c, context if cross else None, mask=~hidden), wanted)
    back = to_torch(ours)
    assert back.add_zero_attn
    close(back(c, context, context, attn_mask=hidden)[0], wanted)


def test_a_key_that_no_token_made() -> None:
    with pytest.raises(
        ConfigError, match=r"add_bias_kv has a key and a value that no.*\n.*ch.watch"
    ):
        from_torch(their_layer(add_bias_kv=True))


def test_keys_and_values_from_two_contexts() -> None:
    with pytest.raises(ConfigError, match="must come from one context; got kdim 7 and vdim 11"):
        from_torch(their_layer(kdim=7, vdim=11))


@pytest.mark.parametrize(
    "options",
    [
        {"kv_heads": 1},
        {"key_dim": 4},
        {"value_dim": 4},
        {"activation": torch.tanh},
        {"norm": nn.RMSNorm},
        {"rotary": Rotary(4)},
        {"softcap": 2.0},
        {"sinks": True},
        {"window": 3},
        {"scale": 1.0},
    ],
    ids=lambda options: next(iter(options)),
)
def test_what_torch_does_not_have(options: dict[str, Any]) -> None:
    with pytest.raises(
        ConfigError, match=r"MultiheadAttention has one head width.*none of: grouped"
    ):
        to_torch(MultiHeadAttention(MODEL, HEADS, **options))


def test_biases_on_some_projections_only() -> None:
    with pytest.raises(ConfigError, match="biases on all projections or on none"):
        to_torch(MultiHeadAttention(MODEL, HEADS, output_bias=True))
