"""The plain path against numbers worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

import clearhead as ch
from clearhead.attention import masks

# One head, two queries, three keys, key_dim 4 (so scale 1/2), value_dim 2.
QUERY = torch.tensor([[2.0, 0.0, 0.0, 2.0], [0.0, 4.0, 0.0, 0.0]], dtype=torch.float64)
KEY = torch.tensor([[1.0, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0]], dtype=torch.float64)
VALUE = torch.tensor([[1.0, 0.0], [0.0, 10.0], [100.0, 0.0]], dtype=torch.float64)
SCORES = [[4.0, 0.0, 0.0], [0.0, 4.0, 0.0]]
SCALED = [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0]]
E2 = math.exp(2.0)


def steps(**options: Any) -> Any:
    return ch.attention_steps(QUERY, KEY, VALUE, **options)


def close(found: Tensor, wanted: Any) -> None:
    torch.testing.assert_close(found, torch.tensor(wanted, dtype=found.dtype))


def test_the_columns_of_the_table() -> None:
    found = steps()
    big, small = E2 / (E2 + 2), 1 / (E2 + 2)
    close(found.scores, SCORES)
    close(found.scaled, SCALED)
    close(found.masked, SCALED)
    assert found.capped is None and found.biased is None
    assert found.scale == 0.5
    close(found.weights, [[big, small, small], [small, big, small]])
    close(found.weighted[0], [[big, 0.0], [0.0, 10 * small], [100 * small, 0.0]])
    close(found.output, [[big + 100 * small, 10 * small], [101 * small, 10 * big]])
    close(found.value, VALUE.tolist())


def test_every_option_at_once_in_the_order_of_the_formula() -> None:
    bias = torch.tensor([[0.0, 1.0, -1.0], [0.5, 0.0, 0.25]], dtype=torch.float64)
    mask = torch.tensor([[True, True, False], [True, True, True]])
    sinks = torch.tensor([0.75], dtype=torch.float64)
    found = steps(bias=bias, mask=mask, sinks=sinks, softcap=3.0, scale=0.25)
    cap = 3 * math.tanh(1 / 3)
    close(found.scores, SCORES)
    close(found.scaled, [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    close(found.capped, [[cap, 0.0, 0.0], [0.0, cap, 0.0]])
    close(found.biased, [[cap, 1.0, -1.0], [0.5, cap, 0.25]])
    close(found.masked, [[cap, 1.0, -math.inf], [0.5, cap, 0.25]])
    first = math.exp(cap) + math.exp(1.0) + math.exp(0.75)
    second = math.exp(0.5) + math.exp(cap) + math.exp(0.25) + math.exp(0.75)
    weights = [
        [math.exp(cap) / first, math.exp(1.0) / first, 0.0],
        [math.exp(0.5) / second, math.exp(cap) / second, math.exp(0.25) / second],
    ]
    close(found.weights, weights)
    close(found.output, (torch.tensor(weights, dtype=torch.float64) @ VALUE).tolist())


def test_causal_is_aligned_to_the_end() -> None:
    found = steps(causal=True)
    assert found.masked[0].isneginf().tolist() == [False, False, True]
    assert found.masked[1].isneginf().tolist() == [False, False, False]
    one = ch.attention_steps(QUERY[:1], KEY, VALUE, causal=True)
    assert (one.weights > 0).all()


@pytest.mark.parametrize(
    ("window", "causal", "drawing"),
    [
        (1, True, "■ · · · ·\n· ■ · · ·\n· · ■ · ·\n· · · ■ ·\n· · · · ■"),
        (3, True, "■ · · · ·\n■ ■ · · ·\n■ ■ ■ · ·\n· ■ ■ ■ ·\n· · ■ ■ ■"),
        (1, False, "■ · · · ·\n· ■ · · ·\n· · ■ · ·\n· · · ■ ·\n· · · · ■"),
        (2, False, "■ · · · ·\n■ ■ · · ·\n· ■ ■ · ·\n· · ■ ■ ·\n· · · ■ ■"),
        (3, False, "■ ■ · · ·\n■ ■ ■ · ·\n· ■ ■ ■ ·\n· · ■ ■ ■\n· · · ■ ■"),
    ],
)
def test_a_window_counts_the_own_key(window: int, causal: bool, drawing: str) -> None:
    states = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    seen = ch.attention_steps(states, states, states, window=window, causal=causal).weights > 0
    assert masks.dense(seen).draw(5, 5) == drawing
    assert seen.sum(-1).max() <= window


def test_weighted_sums_to_the_output_with_all_axes_different() -> None:
    torch.manual_seed(0)
    query, key, value = torch.randn(2, 6, 5, 7), torch.randn(2, 3, 11, 7), torch.randn(2, 3, 11, 13)
    found = ch.attention_steps(query, key, value, causal=True)
    assert found.scores.shape == found.weights.shape == (2, 6, 5, 11)
    assert found.weighted.shape == (2, 6, 5, 11, 13)
    assert found.output.shape == (2, 6, 5, 13)
    torch.testing.assert_close(found.weighted.sum(-2), found.output)
    torch.testing.assert_close(found.weights.sum(-1), torch.ones(2, 6, 5))
    assert found.weighted is found.weighted  # computed once


def test_query_heads_share_key_value_heads_in_order() -> None:
    torch.manual_seed(0)
    query, key, value = torch.randn(1, 6, 5, 7), torch.randn(1, 3, 11, 7), torch.randn(1, 3, 11, 2)
    found = ch.attention_steps(query, key, value)
    for head in range(6):
        alone = ch.attention_steps(query[0, head], key[0, head // 2], value[0, head // 2])
        torch.testing.assert_close(found.output[0, head], alone.output)


def test_a_sink_takes_its_share() -> None:
    found = steps(sinks=torch.tensor([2.0], dtype=torch.float64))
    close(found.weights.sum(-1), [(E2 + 2) / (2 * E2 + 2)] * 2)
    nothing = steps(sinks=torch.tensor([-math.inf], dtype=torch.float64))
    close(nothing.weights, steps().weights.tolist())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_rounded_only_at_the_end(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, 3, 17, 8).to(dtype) for _ in range(3))
    half = ch.attention_steps(query, key, value, causal=True)
    single = ch.attention_steps(query.float(), key.float(), value.float(), causal=True)
    for name in ("scores", "scaled", "masked", "weights", "output"):
        column = getattr(half, name)
        assert column.dtype == dtype
        assert column.equal(getattr(single, name).to(dtype)), name


def test_a_bias_of_another_precision() -> None:
    bias = torch.randn(2, 3, dtype=torch.float32)
    found = steps(bias=bias)
    assert found.output.dtype == torch.float64
    single = ch.attention_steps(QUERY.float(), KEY.float(), VALUE.float(), bias=bias.double())
    assert single.output.dtype == torch.float32
    torch.testing.assert_close(single.output, found.output.float())


@pytest.mark.parametrize("with_sinks", [False, True])
def test_a_query_that_sees_nothing_gets_zeros_and_no_gradient(with_sinks: bool) -> None:
    query, key, value = (part.clone().requires_grad_() for part in (QUERY, KEY, VALUE))
    sinks = torch.zeros(1, dtype=torch.float64) if with_sinks else None
    mask = torch.tensor([[False], [True]])
    found = ch.attention_steps(query, key, value, mask=mask, sinks=sinks)
    assert found.output[0].tolist() == [0.0, 0.0]
    assert found.weights[0].tolist() == [0.0, 0.0, 0.0]
    found.output.sum().backward()  # type: ignore[no-untyped-call]
    assert query.grad is not None and key.grad is not None and value.grad is not None
    assert query.grad[0].tolist() == [0.0] * 4
    assert all(part.isfinite().all() for part in (query.grad, key.grad, value.grad))
    assert query.grad[1].abs().sum() > 0


def test_a_bias_of_minus_infinity_hides_like_a_mask() -> None:
    mask = torch.tensor([[True, False, True], [False, False, False]])
    bias = torch.where(mask, 0.0, -math.inf).double()
    close(steps(bias=bias).weights, steps(mask=mask).weights.tolist())


def test_no_keys_at_all() -> None:
    found = ch.attention_steps(QUERY, KEY[:0], VALUE[:0])
    assert found.weights.shape == (2, 0)
    assert found.output.tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_leading_axes_come_back_as_they_were() -> None:
    torch.manual_seed(0)
    query, key, value = (
        torch.randn(2, 3, 4, 5, 7),
        torch.randn(2, 1, 4, 11, 7),
        torch.randn(2, 3, 4, 11, 13),
    )
    found = ch.attention_steps(query, key, value)
    assert found.weights.shape == (2, 3, 4, 5, 11)
    assert found.output.shape == (2, 3, 4, 5, 13)
    alone = ch.attention_steps(query[1, 2], key[1, 0], value[1, 2])
    assert alone.output.shape == (4, 5, 13)
    torch.testing.assert_close(found.output[1, 2], alone.output)
