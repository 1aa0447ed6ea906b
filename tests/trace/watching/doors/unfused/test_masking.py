from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tests.trace.watching.doors.unfused.followed import trail_of

HIDDEN = torch.ones(6, 5, 7, dtype=torch.bool).triu(3)


def assigned(scores: Tensor) -> Tensor:
    scores[HIDDEN] = -1e9
    return scores


@pytest.mark.parametrize(
    "hide",
    [
        lambda s: s.masked_fill(HIDDEN, -1e9),
        lambda s: torch.where(HIDDEN, torch.tensor(-1e9), s),
        lambda s: torch.where(~HIDDEN, s, torch.tensor(-1e9)),
        assigned,
    ],
)
def test_every_way_to_hide_says_what_and_by_which_number(hide: Callable[[Tensor], Tensor]) -> None:
    trail = trail_of(hide)
    assert trail.fill == -1e9 and not trail.opaque
    assert torch.equal(trail.hidden[0].tensor.expand(6, 5, 7), HIDDEN)


def test_a_small_number_hides_nothing() -> None:
    assert trail_of(lambda s: s.masked_fill(HIDDEN, -3.0)).opaque
    assert trail_of(lambda s: s.clamp(-1, 1)).opaque
    assert not trail_of(lambda s: s.clamp(min=torch.finfo(s.dtype).min)).opaque
