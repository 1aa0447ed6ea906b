from __future__ import annotations

import pytest
import torch

from clearhead.layers.normalisation import RMSNorm


def test_by_hand() -> None:
    norm = RMSNorm(2, epsilon=0.5)
    with torch.no_grad():
        norm.weight.copy_(torch.tensor([1.0, 10.0]))
    got = norm(torch.tensor([[3.0, 4.0]]))[0].tolist()  # mean of squares 12.5, and 0.5: √13
    assert got == pytest.approx([3 / 13**0.5, 40 / 13**0.5])


@pytest.mark.parametrize("shape", [(7,), (3, 7), (2, 5, 3, 7)])
def test_as_torch_does_it(shape: tuple[int, ...]) -> None:
    ours, theirs = RMSNorm(7, 1e-5), torch.nn.RMSNorm(7, eps=1e-5)
    with torch.no_grad():
        ours.weight.normal_()
        theirs.weight.copy_(ours.weight)
    states = torch.randn(shape)
    torch.testing.assert_close(ours(states), theirs(states))


def test_offset_starts_at_zero_and_means_one() -> None:
    plain, offset = RMSNorm(5), RMSNorm(5, offset=True)
    assert not offset.weight.any()
    states = torch.randn(3, 5)
    torch.testing.assert_close(offset(states), plain(states))
    with torch.no_grad():
        plain.weight.copy_(torch.arange(5.0))
        offset.weight.copy_(torch.arange(5.0) - 1)
    torch.testing.assert_close(offset(states), plain(states))


def test_half_precision_is_computed_in_float32() -> None:
    norm = RMSNorm(64).to(torch.bfloat16)
    states = (300 * torch.randn(3, 64)).to(torch.bfloat16)
    wanted = RMSNorm(64)(states.float())
    got = norm(states)
    assert got.dtype == torch.bfloat16
    torch.testing.assert_close(got.float(), wanted, rtol=2**-8, atol=0)
    huge = torch.full((1, 64), 60_000.0, dtype=torch.float16)  # its square is no float16
    torch.testing.assert_close(RMSNorm(64).half()(huge), torch.ones(1, 64).half())


def test_double_stays_double() -> None:
    states = torch.randn(3, 5, dtype=torch.float64)
    assert RMSNorm(5).double()(states).dtype == torch.float64


def test_zeros_are_no_trouble() -> None:
    norm, states = RMSNorm(5), torch.zeros(2, 5, requires_grad=True)
    norm(states).sum().backward()
    assert states.grad is not None and states.grad.isfinite().all()
    assert not norm(states).any()


def test_it_says_what_it_is() -> None:
    assert repr(RMSNorm(5, 1e-6)) == "RMSNorm(5, epsilon=1e-06)"
