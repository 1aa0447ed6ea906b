"""Dropout: the share that it promises, the same from the same seed, nothing outside training."""

from __future__ import annotations

import pytest
import torch

from clearhead.layers.dropout import FEW, drop


@pytest.mark.parametrize("share", [0.1, 0.3, 0.75])
@pytest.mark.parametrize("count", [211, 300_007])  # below and above FEW: two ways to draw
def test_share_and_mean(share: float, count: int) -> None:
    torch.manual_seed(3)
    dropped = drop(torch.ones(count), share)
    kept = dropped[dropped != 0]
    torch.testing.assert_close(kept, torch.full_like(kept, 1 / (1 - share)), atol=1e-4, rtol=1e-4)
    tolerance = 4 * (share * (1 - share) / count) ** 0.5
    assert abs((dropped == 0).double().mean() - share) < tolerance


def test_follows_torchs_seed() -> None:
    states = torch.randn(97, 101)
    assert states.numel() > FEW
    torch.manual_seed(5)
    one, two = drop(states, 0.5), drop(states, 0.5)
    torch.manual_seed(5)
    torch.testing.assert_close(drop(states, 0.5), one, atol=0, rtol=0)
    assert not torch.equal(one, two)


def test_neighbours_are_independent() -> None:
    """Bits of one drawn number serve four entries: none may follow from another."""
    torch.manual_seed(7)
    kept = (drop(torch.ones(400_000), 0.5) != 0).double().view(-1, 4)
    together = torch.corrcoef(kept.T) - torch.eye(4)
    assert together.abs().max() < 4 * kept.shape[0] ** -0.5


def test_gradient_goes_where_the_entry_went() -> None:
    torch.manual_seed(11)
    states = torch.randn(67, 71, requires_grad=True)
    dropped = drop(states, 0.25)
    dropped.sum().backward()  # type: ignore[no-untyped-call]
    assert states.grad is not None
    torch.testing.assert_close(states.grad * states.detach(), dropped.detach())


def test_nothing_happens_outside_training_or_without_a_share() -> None:
    states = torch.randn(5, 7)
    assert drop(states, 0.5, training=False) is states
    assert drop(states, 0.0) is states
