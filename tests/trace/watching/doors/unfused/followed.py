"""What a mode knows of a tensor that a few operations made."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from clearhead.trace.watching.doors.unfused.mode import UnfusedMode
from clearhead.trace.watching.doors.unfused.trail import Pending, Trail
from clearhead.trace.watching.watchers import add_watcher, remove_watcher
from tests.trace.watching.test_watchers import Spy

QUERY, KEY, VALUE = (
    torch.randn(6, count, width, generator=torch.Generator().manual_seed(count))
    for count, width in ((5, 11), (7, 11), (7, 13))
)


def followed(steps: Callable[[Tensor], Tensor]) -> Trail | Pending | None:
    """The entry of what some steps make of query · key."""
    spy, mode = Spy(), UnfusedMode()
    add_watcher(spy)
    try:
        with torch.no_grad(), mode:
            made = steps(torch.bmm(QUERY, KEY.mT))
            return mode.entry(made)
    finally:
        remove_watcher(spy)


def trail_of(steps: Callable[[Tensor], Tensor]) -> Trail:
    """The same, of something that is on a trail."""
    found = followed(steps)
    assert isinstance(found, Trail)
    return found
