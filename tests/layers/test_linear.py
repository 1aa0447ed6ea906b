"""The linear map by oneDNN, against torch's own and float64."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from clearhead.layers import linear
from clearhead.layers.linear import FEWEST_ROWS, Linear


def _pair(bias: bool) -> tuple[Linear, nn.Linear]:
    torch.manual_seed(3)
    ours, plain = Linear(37, 53, bias=bias), nn.Linear(37, 53, bias=bias)
    plain.load_state_dict(ours.state_dict())
    return ours, plain


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("shape", [(1, 61), (7, 11), (FEWEST_ROWS,), (2, 3, 17)])
def test_equals_the_product(shape: tuple[int, ...], bias: bool) -> None:
    ours, plain = _pair(bias)
    states = torch.randn(*shape, 37)
    with torch.no_grad():
        assert linear._by_onednn(states, ours.weight)
        got = ours(states)
    assert got.shape == (*shape, 53)
    torch.testing.assert_close(got.double(), plain.double()(states.double()), atol=1e-6, rtol=1e-6)


def test_states_that_do_not_lie_side_by_side() -> None:
    ours, plain = _pair(True)
    states = torch.randn(37, 5, 11).permute(1, 2, 0)
    with torch.no_grad():
        torch.testing.assert_close(ours(states), plain(states))


def test_a_product_worked_by_hand() -> None:
    layer = Linear(2, 1)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[2.0, -1.0]]))
        layer.bias.copy_(torch.tensor([0.5]))
        got = layer(torch.tensor([[3.0, 4.0]]).expand(FEWEST_ROWS, 2))
    assert got.flatten().tolist() == [2.5] * FEWEST_ROWS


def test_left_to_torch() -> None:
    ours, plain = _pair(True)
    states = torch.randn(41, 37)
    assert not linear._by_onednn(states, ours.weight)  # somebody may differentiate
    gradient = torch.autograd.grad(ours(states).sum(), ours.weight)[0]
    torch.testing.assert_close(gradient, torch.autograd.grad(plain(states).sum(), plain.weight)[0])
    with torch.no_grad():
        assert not linear._by_onednn(states[: FEWEST_ROWS - 1], ours.weight)
        assert not linear._by_onednn(states.double(), ours.weight)
        assert not linear._by_onednn(states.to("meta"), ours.weight)
        assert not linear._by_onednn(states[:0], ours.weight)
        assert ours(states[:0]).shape == (0, 53)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert ours(states).dtype is torch.bfloat16
        torch.testing.assert_close(torch.func.vmap(ours)(states[None]), plain(states)[None])
