"""Sinks joined to an attention that was computed without them."""

from __future__ import annotations

import torch

from clearhead.attention.sinks import sink_gradient, with_sinks


def textbook(
    scores: torch.Tensor, value: torch.Tensor, sinks: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor]:
    powers = scores.exp()
    total = powers.sum(-1)
    total = total if sinks is None else total + sinks.exp()[:, None]
    return powers @ value / total[..., None], total.log()


def test_they_join_the_denominator_and_nothing_else() -> None:
    torch.manual_seed(0)
    scores, value = torch.randn(2, 3, 5, 7), torch.randn(2, 3, 7, 11)
    sinks = torch.tensor([0.5, -2.0, 3.0])
    output, total = with_sinks(*textbook(scores, value, None), sinks)
    wanted, wanted_total = textbook(scores, value, sinks)
    torch.testing.assert_close(output, wanted)
    torch.testing.assert_close(total, wanted_total)


def test_without_sinks_nothing_changes() -> None:
    output, logsum = torch.randn(1, 2, 3, 5), torch.randn(1, 2, 3)
    assert with_sinks(output, logsum, None) == (output, logsum)


def test_a_sink_worked_by_hand() -> None:
    """One key of score 0 beside a sink of 0: half of the value is left."""
    output, total = with_sinks(torch.full((1, 1, 1, 1), 6.0), torch.zeros(1, 1, 1), torch.zeros(1))
    assert output.item() == 3.0
    torch.testing.assert_close(total.exp().item(), 2.0)


def test_their_gradient() -> None:
    torch.manual_seed(1)
    scores, value = torch.randn(2, 3, 5, 7).double(), torch.randn(2, 3, 7, 11).double()
    gradient = torch.randn(2, 3, 5, 11).double()
    sinks = torch.tensor([0.5, -2.0, 3.0]).double().requires_grad_()
    output, total = textbook(scores, value, sinks)
    wanted = torch.autograd.grad(output, sinks, gradient)[0]
    got = sink_gradient(gradient, output.detach(), total.detach(), sinks.detach())
    torch.testing.assert_close(got, wanted)
