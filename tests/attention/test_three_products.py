"""Values narrower than keys: three operations of torch against the formula in float64."""

from __future__ import annotations

import threading

import pytest
import torch

import clearhead as ch
from clearhead.attention.scratch import SCRATCH, Scratch
from clearhead.attention.three_products import MOST_SCORES, three_products, three_products_apply


@pytest.mark.parametrize(("heads", "kv_heads"), [(7, 7), (6, 3), (5, 1)])
def test_equals_the_formula(heads: int, kv_heads: int) -> None:
    torch.manual_seed(heads)
    query = torch.randn(2, heads, 11, 17)
    key, value = torch.randn(2, kv_heads, 13, 17), torch.randn(2, kv_heads, 13, 5)
    assert three_products_apply(query, key, value)
    got = three_products(query, key, value, scale=0.3)
    wanted = ch.attention_steps(query.double(), key.double(), value.double(), scale=0.3).output
    torch.testing.assert_close(got.double(), wanted, atol=1e-6, rtol=0)
    assert torch.equal(ch.attention(query, key, value, scale=0.3), got)


def test_weights_worked_by_hand() -> None:
    """Scores ln 1, ln 3: weights 1/4 and 3/4."""
    query, key = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 7.0], [3.0, 1.0]])
    key[:, 0] = torch.tensor([1.0, 3.0]).log()
    value = torch.tensor([[8.0], [4.0]])
    got = three_products(query[None, None], key[None, None], value[None, None], scale=1.0)
    torch.testing.assert_close(got.flatten(), torch.tensor([5.0]))


def test_what_it_is_not_for() -> None:
    query, key, value = torch.randn(1, 3, 5, 8), torch.randn(1, 3, 7, 8), torch.randn(1, 3, 7, 4)
    assert three_products_apply(query, key, value)
    assert not three_products_apply(query, key, torch.randn(1, 3, 7, 8))
    assert not three_products_apply(query.double(), key.double(), value.double())
    long = MOST_SCORES // 15 + 1
    assert not three_products_apply(
        query, key.expand(1, 3, -1, 8)[:, :, :1].expand(-1, -1, long, -1), value
    )
    assert not three_products_apply(query.to("meta"), key.to("meta"), value.to("meta"))


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
