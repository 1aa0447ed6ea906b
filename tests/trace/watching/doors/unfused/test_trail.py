from __future__ import annotations

import torch

from clearhead.trace.watching.doors.unfused.trail import Source, version
from tests.trace.watching.doors.unfused.followed import trail_of


def test_versions_count_writes_where_torch_does() -> None:
    tensor = torch.zeros(3)
    assert version(tensor) == 0
    tensor += 1
    assert version(tensor) == 1
    with torch.inference_mode():
        assert version(torch.zeros(3)) is None


def test_a_source_that_was_written_over_is_not_whole() -> None:
    weights = torch.ones(2)
    trail = trail_of(lambda s: torch.softmax(s, -1))
    source = Source(trail, weights)
    assert source.whole is (trail.version == 0)
    weights += 1
    weights += 1
    assert not source.whole
