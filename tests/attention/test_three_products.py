"""Values narrower than keys: three operations of torch against the formula in float64."""

from __future__ import annotations

import math
import threading

import pytest
import torch

import clearhead as ch
from clearhead.attention import fast
from clearhead.attention import three_products as module
from clearhead.attention.three_products import (
    FEW_KEYS,
    short_attention,
    three_products,
    three_products_apply,
)
from clearhead.errors import InputError
from clearhead.kernels.scratch import SCRATCH, Scratch


@pytest.mark.parametrize(("heads", "kv_heads"), [(7, 7), (6, 3), (4, 2)])
def test_equals_the_formula(heads: int, kv_heads: int) -> None:
    torch.manual_seed(heads)
    query = torch.randn(2, heads, 11, 17)
    key, value = torch.randn(2, kv_heads, 13, 17), torch.randn(2, kv_heads, 13, 5)
    assert three_products_apply(query, key, False)
    got = three_products(query, key, value, scale=0.3)
    wanted = ch.attention_steps(query.double(), key.double(), value.double(), scale=0.3).output
    torch.testing.assert_close(got.double(), wanted, atol=1e-6, rtol=0)
    assert torch.equal(ch.attention(query, key, value, scale=0.3), got)


@pytest.mark.parametrize("at_once", [1, 13 * 4, 13 * 11 * 2, 13 * 11 * 5])
def test_blocks_of_heads_and_queries_make_no_difference(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(at_once)
    query = torch.randn(2, 6, 11, 17)
    key, value = torch.randn(2, 3, 13, 17), torch.randn(2, 3, 13, 5)
    wanted = three_products(query, key, value, scale=0.3)
    monkeypatch.setattr(module, "SCORES_AT_ONCE", at_once)
    got = three_products(query, key, value, scale=0.3)
    torch.testing.assert_close(got, wanted, atol=1e-6, rtol=0)


def test_weights_worked_by_hand() -> None:
    """Scores ln 1, ln 3: weights 1/4 and 3/4."""
    query, key = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 7.0], [3.0, 1.0]])
    key[:, 0] = torch.tensor([1.0, 3.0]).log()
    value = torch.tensor([[8.0], [4.0]])
    got = three_products(query[None, None], key[None, None], value[None, None], scale=1.0)
    torch.testing.assert_close(got.flatten(), torch.tensor([5.0]))


@pytest.mark.parametrize(("heads", "kv_heads"), [(7, 7), (6, 3), (4, 2)])
@pytest.mark.parametrize("queries", [13, 11, 2])
def test_causal_is_aligned_to_the_end(heads: int, kv_heads: int, queries: int) -> None:
    torch.manual_seed(heads)
    query = torch.randn(2, heads, queries, 17)
    key, value = torch.randn(2, kv_heads, 13, 17), torch.randn(2, kv_heads, 13, 19)
    assert three_products_apply(query, key, True)
    got = three_products(query, key, value, scale=0.3, causal=True)
    exact = (part.double() for part in (query, key, value))
    wanted = ch.attention_steps(*exact, scale=0.3, causal=True).output
    torch.testing.assert_close(got.double(), wanted, atol=1e-6, rtol=0)


def test_what_it_is_not_for() -> None:
    query, key = torch.randn(1, 3, 5, 8), torch.randn(1, 3, 7, 8)
    assert three_products_apply(query, key, False)
    assert three_products_apply(query, key, True)
    assert not three_products_apply(key, query, True)  # two see nothing
    assert not three_products_apply(query.double(), key.double(), False)
    assert not three_products_apply(query.to("meta"), key.to("meta"), False)


def test_only_for_short_texts() -> None:
    query = torch.zeros(1, 3, 5, 8)
    assert three_products_apply(query, torch.zeros(1, 3, FEW_KEYS, 8), True)
    assert not three_products_apply(query, torch.zeros(1, 3, FEW_KEYS + 1, 8), False)


def test_a_single_key_value_head_is_for_flash() -> None:
    query, key = torch.randn(4, 3, 5, 8), torch.randn(4, 1, 7, 8)
    assert not three_products_apply(query, key, False)


def test_results_do_not_share_the_scratch() -> None:
    query, key, value = torch.randn(1, 3, 5, 8), torch.randn(1, 3, 7, 8), torch.randn(1, 3, 7, 4)
    first = three_products(query, key, value, scale=1.0)
    kept = first.clone()
    three_products(query + 1, key, value, scale=1.0)
    assert torch.equal(first, kept)


def test_each_thread_has_scratch_of_its_own() -> None:
    scratch, addresses = Scratch(), []

    def note() -> None:
        addresses.append(scratch.floats(10).data_ptr())

    note()
    thread = threading.Thread(target=note)
    held = scratch.memory
    thread.start()
    thread.join()
    assert held.numel() >= 10
    assert addresses[0] != addresses[1]
    assert SCRATCH.floats(3).numel() >= 3


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("tokens", [2, 128, FEW_KEYS])
def test_the_lean_way_is_the_long_one(
    tokens: int, causal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(tokens)
    query, key, value = torch.randn(3, 2, 4, tokens, 8)
    lean = short_attention(query, key, value, None, causal)
    assert lean is not None
    monkeypatch.setattr(fast, "short_attention", lambda *_: None)
    assert torch.equal(lean, ch.attention(query, key, value, causal=causal))


def test_what_the_lean_way_leaves_to_the_long_one() -> None:
    def taken(query: object, key: object, value: object, scale: float | None = None) -> bool:
        return short_attention(query, key, value, scale, False) is not None  # type: ignore[arg-type]

    query, key, value = torch.randn(3, 1, 2, 5, 8)
    assert taken(query, key, value)
    assert not taken(query, key, value[:, :1])  # grouped
    assert not taken(query, key[:, :, :4], value[:, :, :4])
    assert not taken(query[:, :1], key[:, :1], value[:, :1])  # a single head
    assert not taken(query[0], key[0], value[0])
    assert not taken(query.double(), key.double(), value.double())
    assert not taken(query.clone().requires_grad_(), key, value)  # few keys: flash hides NaN
    assert not taken(query, key, value, math.inf)
    with pytest.raises(InputError, match=r"scale .* must be a finite number"):
        ch.attention(query, key, value, scale=math.inf)
    value[0, 1, 2, 3] = math.nan
    assert not taken(query, key, value)
    with pytest.raises(InputError, match="value holds NaN"):
        ch.attention(query, key, value)


def test_numbers_whose_square_is_infinite_are_fine() -> None:
    query, key, value = torch.randn(3, 1, 2, 5, 8)
    large = ch.attention(query, key, value * 1e25)
    torch.testing.assert_close(large / 1e25, ch.attention(query, key, value))


@pytest.mark.parametrize("causal", [False, True])
def test_the_lean_way_has_a_gradient(causal: bool) -> None:
    torch.manual_seed(0)
    inputs = torch.randn(3, 2, 4, 33, 8).unbind()
    learned = [part.clone().requires_grad_() for part in inputs]
    query, key, value = learned
    lean = short_attention(query, key, value, None, causal)
    assert lean is not None
    got = torch.autograd.grad(lean.sin().sum(), learned)
    exact = [part.double().requires_grad_() for part in inputs]
    output = ch.attention_steps(*exact, causal=causal).output
    wanted = torch.autograd.grad(output.sin().sum(), exact)
    for found, right in zip(got, wanted, strict=True):
        torch.testing.assert_close(found.double(), right, atol=1e-5, rtol=0)
    learned[2].data[1, 2, 3, 4] = math.nan
    with pytest.raises(InputError, match="value holds NaN"):
        ch.attention(*learned, causal=causal)
