from __future__ import annotations

import pytest
import torch

from clearhead.trace.watching.doors.unfused.operands import number_of, part_of, same_shape
from tests.trace.watching.doors.unfused.followed import trail_of


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
