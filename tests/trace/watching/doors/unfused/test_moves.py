from __future__ import annotations

import torch

from clearhead.trace.watching.axis_digits import sizes_of
from clearhead.trace.watching.doors.unfused.trail import Pending
from tests.trace.watching.doors.unfused.followed import VALUE, followed, trail_of


def test_axes_are_followed_through_views_and_permutations() -> None:
    moved = trail_of(lambda s: s.view(2, 3, 5, 7).permute(1, 0, 3, 2).transpose(0, 1))
    assert sizes_of(moved.label) == (2, 3, 7, 5)
    assert sizes_of(trail_of(lambda s: s.double().clone()).label) == (6, 5, 7)
    assert followed(lambda s: s[:, :, None].expand(6, 5, 2, 7)) is None  # repeated


def test_an_output_is_followed_until_its_heads_are_joined() -> None:
    weights = torch.nn.functional.softmax
    found = followed(lambda s: (weights(s, -1) @ VALUE).view(2, 3, 5, 13).transpose(1, 2))
    assert isinstance(found, Pending) and found.joined is not None
    assert sizes_of(found.joined) == (2, 5, 3, 13)
