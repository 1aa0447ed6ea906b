from __future__ import annotations

import pytest
import torch
from torch import Tensor

from clearhead.trace.watching.doors.unfused.mode import UnfusedMode
from clearhead.trace.watching.doors.unfused.operands import opaque
from clearhead.trace.watching.doors.unfused.steps import STEPS
from clearhead.trace.watching.doors.unfused.trail import Pending, Trail
from clearhead.trace.watching.watchers import add_watcher, remove_watcher
from tests.trace.watching.test_watchers import Spy

LEFT, RIGHT = torch.randn(6, 5, 11), torch.randn(6, 7, 11)


@pytest.fixture
def mode() -> UnfusedMode:
    return UnfusedMode()


def followed(mode: UnfusedMode, tensor: Tensor) -> Trail | Pending | None:
    return mode.entry(tensor)


@pytest.mark.parametrize(("factor", "scale"), [(0.5, 0.5), (torch.tensor(3.0), 3.0), (-1.0, None)])
def test_what_a_factor_does_to_the_scale(
    mode: UnfusedMode, factor: float | Tensor, scale: float | None
) -> None:
    spy = Spy()
    add_watcher(spy)
    with mode:
        trail = mode.trail(torch.bmm(LEFT, RIGHT.mT) * factor)
    remove_watcher(spy)
    assert trail is not None and trail.opaque is (scale is None)
    assert scale is None or trail.scale == scale


def test_an_operation_that_is_no_step_makes_scores_opaque(mode: UnfusedMode) -> None:
    assert torch.ops.aten.sin not in STEPS and torch.ops.aten._softmax in STEPS
    spy = Spy()
    add_watcher(spy)
    with mode:
        scores = torch.bmm(LEFT, RIGHT.mT)
        sine = scores.sin()
        other = torch.softmax(scores, dim=1)  # over the rows: they are keys
    remove_watcher(spy)
    trail = mode.trail(sine)
    assert trail is not None and trail.opaque and mode.trail(other) is not None
    assert opaque(mode, LEFT, (LEFT,), {}) is None
