from __future__ import annotations

import pytest
import torch

from clearhead.trace.watching.axis_digits import label_of
from clearhead.trace.watching.doors.unfused.scored_call import four, narrowest, scored_call
from clearhead.trace.watching.observed_call import ObservedCall
from tests.trace.watching.doors.unfused.followed import KEY, QUERY, trail_of


def test_a_trail_becomes_a_call_with_four_axes() -> None:
    bias = torch.arange(7.0)
    trail = trail_of(lambda s: torch.softmax(s * 0.5 + bias, -1))
    weights = torch.softmax(QUERY @ KEY.mT * 0.5 + bias, -1)
    heads = trail.label[0]
    found = scored_call(trail, weights, trail.label, ((), heads, trail.label[1]))
    assert isinstance(found, ObservedCall) and found.scale == 0.5
    assert torch.equal(found.query[0], QUERY) and torch.equal(found.key[0], KEY)
    assert found.bias is not None and torch.equal(found.bias.flatten(), bias)


def test_axes_in_the_wanted_order() -> None:
    label = label_of("zn", (6, 5))
    swapped = four(QUERY[..., 0], label, label, ((), label[1], label[0], ()))
    assert swapped is not None and torch.equal(swapped[0, :, :, 0], QUERY[..., 0].t())


def test_the_precision_is_the_narrowest() -> None:
    assert narrowest(torch.ones(1), torch.ones(1).bfloat16()) == torch.bfloat16


@pytest.mark.parametrize(("size", "dtype"), [(0.1, torch.float32), (40.0, torch.float64)])
def test_temperatures_are_not_rounded_where_scores_are_large(
    size: float, dtype: torch.dtype
) -> None:
    factors = size * torch.rand(6, 5, 1)
    trail = trail_of(lambda s: torch.softmax(s * factors, -1))
    weights = torch.softmax(QUERY @ KEY.mT * factors, -1)
    found = scored_call(trail, weights, trail.label, ((), trail.label[0], trail.label[1]))
    assert isinstance(found, ObservedCall)
    assert found.query.dtype == found.key.dtype == dtype
    exact = QUERY.double() * factors.double()
    assert torch.equal(found.query[0], exact.to(dtype))
