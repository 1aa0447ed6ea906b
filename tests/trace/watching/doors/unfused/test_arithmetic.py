from __future__ import annotations

import pytest
import torch

from tests.trace.watching.doors.unfused.followed import followed, trail_of


def test_scales_multiply_and_a_cap_has_its_own() -> None:
    assert trail_of(lambda s: s * 3 / 4).scale == 0.75
    capped = trail_of(lambda s: torch.tanh(s / 5) * 5)
    assert (capped.scale, capped.capped) == (0.2, 5.0) and not capped.opaque


def test_numbers_that_are_added_are_scaled_with_the_scores() -> None:
    bias = torch.arange(7.0)
    trail = trail_of(lambda s: (s + bias) * 2)
    assert torch.equal(trail.added[0].tensor.flatten(), bias * 2) and trail.scale == 2
    assert torch.equal(trail_of(lambda s: s - bias).added[0].tensor.flatten(), -bias)


@pytest.mark.parametrize("rest", [0.0, 1.5])
def test_exponentials_over_their_sum_are_weights(rest: float) -> None:
    trail = trail_of(lambda s: s.exp() / (s.exp().sum(-1, keepdim=True) + rest))
    assert (trail.kind, trail.rest) == ("weights", rest)
    assert followed(lambda s: s.exp() / (s * 2).exp().sum(-1, keepdim=True)) is None


def test_a_temperature_of_each_row_belongs_to_the_queries() -> None:
    assert len(trail_of(lambda s: s * torch.rand(6, 5, 1)).factors) == 1
    assert trail_of(lambda s: s * torch.rand(7)).opaque  # of each key: no formula
