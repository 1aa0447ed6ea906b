from __future__ import annotations

import torch

from clearhead.trace.watching.doors.unfused.trail import Pending
from tests.trace.watching.doors.unfused.followed import KEY, QUERY, VALUE, followed, trail_of


def test_the_first_product_is_of_queries_and_keys() -> None:
    trail = trail_of(lambda s: s)
    assert torch.equal(trail.query, QUERY) and torch.equal(trail.key, KEY)
    scaled = trail_of(lambda s: torch.baddbmm(s * 0, QUERY, KEY.mT, beta=0, alpha=0.25))
    assert scaled.scale == 0.25 and not scaled.added


def test_the_second_product_is_of_weights_and_values() -> None:
    found = followed(lambda s: torch.bmm(torch.softmax(s, -1), VALUE))
    assert isinstance(found, Pending) and torch.equal(found.value, VALUE)
    assert found.trail.kind == "weights" and found.weights.shape == (6, 5, 7)


def test_a_product_over_heads_mixes_them() -> None:
    talking = trail_of(lambda s: torch.einsum("hqk,hg->gqk", s, torch.randn(6, 3)))
    assert talking.talking and talking.opaque
    mixed = trail_of(lambda s: torch.einsum("hqk,hg->gqk", torch.softmax(s, -1), torch.ones(6, 3)))
    assert mixed.kind == "mixed" and len(mixed.before) == 1
