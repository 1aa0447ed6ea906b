from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from clearhead.attention.cache import KVCache
from clearhead.attention.rotary import Rotary
from clearhead.errors import ConfigError, InputError, ShapeError
from clearhead.layers.multi_head import MultiHeadAttention

BATCH, QUERIES, MODEL = 2, 5, 12


def states(tokens: int = QUERIES, width: int = MODEL, batch: int = BATCH) -> Tensor:
    return torch.randn(batch, tokens, width)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"heads": 5}, "a model width of 12 cannot be divided into 5 heads of equal width"),
        ({"heads": 0}, "heads must be a whole number from 1 to .*; got 0"),
        ({"heads": 0, "key_dim": 3}, "heads must be a whole number from 1 to .*; got 0"),
        ({"kv_heads": 2}, "3 query heads cannot be shared out evenly over 2 key/value heads"),
        ({"kv_heads": 0}, "kv_heads must be a whole number from 1 to .*; got 0"),
        ({"key_dim": 0}, "key_dim must be a whole number from 1 to .*; got 0"),
        ({"value_dim": -1}, "value_dim must be a whole number from 1 to .*; got -1"),
        ({"dropout": 1.0}, "dropout is a share from 0 up to below 1; got 1.0"),
        ({"dropout": -0.1}, "dropout must be a finite number of 0 or more; got -0.1"),
        ({"window": 0}, "window must be a whole number of 1 or more; got 0"),
        ({"scale": float("nan")}, "scale must be a finite number"),
        ({"softcap": 0.0}, "softcap must be a finite number above 0"),
        ({"norm": lambda width: width}, "norm must make a module of a width; got int"),
        ({"rotary": Rotary(6)}, "rotary turns 6 entries, but a head has only 4"),
        ({"context": 7, "causal": True}, "cross-attention looks at another sequence"),
        ({"context": 7, "rotary": Rotary(4)}, "cross-attention looks at another sequence"),
    ],
)
def test_descriptions_that_contradict_themselves(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        MultiHeadAttention(**{"model": 12, "heads": 3, **options})


def test_states_that_do_not_fit() -> None:
    layer, cross = MultiHeadAttention(MODEL, 3), MultiHeadAttention(MODEL, 3, context=7)
    with pytest.raises(ShapeError, match=r"states must be \(batch, query, 12\); got \(2, 5, 11\)"):
        layer(states(width=11))
    with pytest.raises(InputError, match="this is self-attention, it takes no context"):
        layer(states(), states())
    with pytest.raises(InputError, match="cross-attention needs the context to attend to"):
        cross(states())
    with pytest.raises(InputError, match="cross-attention needs the context to attend to"):
        cross(states(), cache=KVCache())
    with pytest.raises(ShapeError, match=r"context must be \(batch, key, 7\); got \(2, 5, 12\)"):
        cross(states(), states())


def test_counts_belong_to_the_cache_of_self_attention() -> None:
    counts = torch.tensor([5, 2])
    with pytest.raises(InputError, match=r"(?s)counts .* here is none.*mask=masks.lengths"):
        MultiHeadAttention(MODEL, 3)(states(), counts=counts)
    with pytest.raises(InputError, match="counts says how far the cache of self-attention"):
        cross = MultiHeadAttention(MODEL, 3, context=7)
        cross(states(), states(11, 7), cache=KVCache(), counts=counts)


def test_states_of_another_type() -> None:
    layer = MultiHeadAttention(MODEL, 3)
    with pytest.raises(InputError, match=r"states must be torch\.float32, as the layer's"):
        layer(states().double())
    with torch.autocast("cpu", torch.bfloat16):  # which brings numbers to the layer's type itself
        assert layer(states().bfloat16()).shape == (BATCH, QUERIES, MODEL)


def test_a_rotation_has_a_row_for_each_query() -> None:
    rotary = Rotary(4)
    layer = MultiHeadAttention(MODEL, 3, rotary=rotary)
    with pytest.raises(ShapeError, match="rotation must have a row for each of 5 queries"):
        layer(states(), rotation=rotary.at(torch.arange(4)[None], torch.float32))
    layer(states(), rotation=rotary.at(torch.arange(5)[None], torch.float32))
