from __future__ import annotations

import pytest
import torch
from transformers.models.bloom import modeling_bloom
from transformers.models.falcon import modeling_falcon

import clearhead as ch
from clearhead.attention.alibi import alibi_bias, alibi_slopes
from clearhead.errors import InputError


def test_the_papers_slopes() -> None:
    assert alibi_slopes(8).tolist() == [2.0**-n for n in range(1, 9)]
    assert alibi_slopes(4).tolist() == [2.0 ** (-2 * n) for n in range(1, 5)]
    assert alibi_slopes(1).tolist() == [2.0**-8]
    # six heads: those of four, then every other one of eight
    assert alibi_slopes(6).tolist() == [2.0**-2, 2.0**-4, 2.0**-6, 2.0**-8, 2.0**-1, 2.0**-3]


@pytest.mark.parametrize("heads", [1, 2, 3, 7, 8, 12, 16, 71])
def test_bloom_and_falcon_in_transformers(heads: int) -> None:
    everything = torch.ones(1, 5)
    bloom = modeling_bloom.build_alibi_tensor(everything, heads, torch.float32)[:, 0]
    falcon = modeling_falcon.build_alibi_tensor(everything, heads, torch.float32)[:, 0]
    # theirs grows with the key's position; within a row that is the same as falling by distance
    ours = alibi_bias(alibi_slopes(heads), 1, 5)[:, 0]
    torch.testing.assert_close(ours - ours[:, :1], bloom, rtol=1e-6, atol=0)
    torch.testing.assert_close(ours - ours[:, :1], falcon, rtol=1e-2, atol=0)  # rounded to bfloat16


def test_the_bias_by_hand() -> None:
    bias = alibi_bias(torch.tensor([1.0, 0.5]), 2, 3)
    assert bias[0].tolist() == [[-1, 0, -1], [-2, -1, 0]]
    assert bias[1].tolist() == [[-0.5, 0, -0.5], [-1, -0.5, 0]]


def test_one_row_says_it_all_for_causal_attention() -> None:
    torch.manual_seed(0)
    query, key, value = torch.randn(1, 6, 5, 7), torch.randn(1, 6, 11, 7), torch.randn(1, 6, 11, 3)
    slopes = alibi_slopes(6)
    whole = ch.attention(query, key, value, causal=True, bias=alibi_bias(slopes, 5, 11))
    row = ch.attention(query, key, value, causal=True, bias=alibi_bias(slopes, 1, 11))
    torch.testing.assert_close(row, whole, atol=1e-6, rtol=0)


def test_no_heads() -> None:
    with pytest.raises(InputError, match=r"heads must be 1 or more; got 0"):
        alibi_slopes(0)
