"""Causal attention in two halves, against the formula in float64."""

from __future__ import annotations

import pytest
import torch

import clearhead as ch
from clearhead.attention import causal_halves as halves
from clearhead.attention.causal_halves import causal_halves


@pytest.mark.parametrize(("heads", "kv_heads"), [(3, 3), (6, 2)])
@pytest.mark.parametrize("length", [2, 7, 331, 512])
def test_equals_the_formula(heads: int, kv_heads: int, length: int) -> None:
    torch.manual_seed(length)
    query = torch.randn(2, heads, length, 16) * 2
    key, value = torch.randn(2, 2, kv_heads, length, 16)
    output, logsum = causal_halves(query, key, value, 0.3)
    steps = ch.attention_steps(query.double(), key.double(), value.double(), causal=True, scale=0.3)
    torch.testing.assert_close(output.double(), steps.output, atol=3e-6, rtol=0)
    torch.testing.assert_close(logsum.double(), steps.masked.logsumexp(-1), atol=1e-5, rtol=1e-6)


def test_attention_takes_it_where_it_is_quicker(monkeypatch: pytest.MonkeyPatch) -> None:
    from clearhead.attention import fast

    lengths: list[int] = []

    def noting(*given: object) -> object:
        lengths.append(given[0].shape[2])  # type: ignore[attr-defined]
        return causal_halves(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(fast, "causal_halves", noting)
    for length in (halves.FEWEST - 1, halves.FEWEST, halves.MOST, halves.MOST + 1):
        query, key, value = torch.randn(3, 1, 2, length, 8)
        got = ch.attention(query, key, value, causal=True)
        wanted = ch.attention_steps(query.double(), key.double(), value.double(), causal=True)
        torch.testing.assert_close(got.double(), wanted.output, atol=1e-6, rtol=1e-6)
    query.requires_grad_()
    ch.attention(query[:, :, :400], key[:, :, :400], value[:, :, :400], causal=True)
    assert lengths == [halves.FEWEST, halves.MOST]  # the gradient goes the usual way
