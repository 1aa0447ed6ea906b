from __future__ import annotations

import pytest
import torch

from clearhead.trace.watching.doors.unfused.operands import number_of, part_of, same_shape
from clearhead.trace.watching.doors.unfused.trail import Pending
from tests.trace.watching.doors.unfused.followed import VALUE, followed, trail_of


@pytest.mark.parametrize(
    ("given", "number"),
    [(3, 3.0), (0.5, 0.5), (torch.tensor([7.0]), 7.0), (torch.ones(2), None), ("3", None)],
)
def test_what_counts_as_a_number(given: object, number: float | None) -> None:
    assert number_of(given) == number


def test_parts_have_the_axes_of_the_scores() -> None:
    trail, scores = trail_of(lambda s: s), torch.zeros(6, 5, 7)
    assert part_of(torch.zeros(7), scores, trail.label).tensor.shape == (1, 1, 7)
    assert same_shape(trail, scores) and not same_shape(trail, scores.mT)


def test_weights_that_are_changed_remember_what_they_were() -> None:
    trail = trail_of(lambda s: torch.softmax(s, -1).square())
    assert trail.kind == "mixed" and trail.opaque
    assert (trail.before[0].weights.sum(-1) - 1).abs().max() < 1e-6


def exponentials(scores: torch.Tensor, shift: float = 0.0) -> torch.Tensor:
    """Weights, but for a shift, as a model has them without a division."""
    return torch.exp(scores - (torch.logsumexp(scores, dim=-1, keepdim=True) + shift))


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("shift", [0.0, 0.5])
def test_exponentials_that_sum_to_one_are_weights(turned: bool, shift: float) -> None:
    """Of others it is known that they are none: their product is refused, not passed over."""

    def multiplied(scores: torch.Tensor) -> torch.Tensor:
        weights = exponentials(scores, shift)
        return VALUE.mT @ weights.mT if turned else weights @ VALUE

    found = followed(multiplied)
    assert isinstance(found, Pending) and found.trail.opaque is (shift > 0)
    assert found.weights.shape == (6, 5, 7)
