from __future__ import annotations

import pytest
import torch
from torch import nn
from transformers import T5Config
from transformers.models.t5.modeling_t5 import T5Attention

import clearhead as ch
from clearhead.errors import InputError
from clearhead.layers.positions import LearnedPositions, RelativeBias


def test_learned_vectors_are_looked_up() -> None:
    layer = LearnedPositions(7, 5)
    assert layer.weight.shape == (7, 5)
    positions = torch.tensor([[0, 1, 2], [4, 6, 0]])
    found = layer(positions)
    assert found.shape == (2, 3, 5)
    assert found[1, 1].equal(layer.weight[6])
    assert layer(torch.arange(3)).equal(layer.weight[:3])
    assert layer(torch.zeros(2, 0, dtype=torch.long)).shape == (2, 0, 5)


def test_learned_vectors_learn() -> None:
    layer = LearnedPositions(7, 5)
    layer(torch.tensor([2, 2, 5])).sum().backward()
    assert layer.weight.grad is not None
    assert layer.weight.grad[:, 0].tolist() == [0, 0, 2, 0, 0, 1, 0]


@pytest.mark.parametrize("position", [7, 99, -1])
def test_a_position_that_was_never_learned(position: int) -> None:
    wanted = rf"position {position}: this model has learned 7 positions, 0 … 6"
    with pytest.raises(InputError, match=wanted):
        LearnedPositions(7, 5)(torch.tensor([[0, position]]))


@pytest.mark.parametrize("causal", [False, True])
def test_relative_bias_is_t5_in_transformers(causal: bool) -> None:
    torch.manual_seed(0)
    config = T5Config(
        num_heads=3,
        relative_attention_num_buckets=8,
        relative_attention_max_distance=20,
        is_decoder=causal,
    )
    theirs = T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
    ours = RelativeBias(3, buckets=8, max_distance=20, causal=causal)
    with torch.no_grad():
        ours.weight.copy_(nn.init.normal_(theirs.relative_attention_bias.weight))
    wanted = theirs.compute_bias(29, 29)[0]
    assert ours(29, 29).equal(wanted)
    assert ours(5, 29).equal(wanted[:, -5:])  # the last queries, as with a cache


def test_relative_bias_learns_through_attention() -> None:
    torch.manual_seed(0)
    layer = RelativeBias(3, buckets=8, max_distance=20)
    query, key = torch.randn(2, 3, 5, 7), torch.randn(2, 3, 11, 7)
    plain = ch.attention(query, key, key)
    assert ch.attention(query, key, key, bias=layer(5, 11)).allclose(plain, atol=1e-6)
    ch.attention(query, key, key, bias=layer(5, 11)).square().sum().backward()  # type: ignore[no-untyped-call]
    assert layer.weight.grad is not None
    assert (layer.weight.grad.abs().sum(1) > 0).sum() >= 6
