"""Every test of this folder computes on one thread and without gradients."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def _quietly(one_thread: None) -> Iterator[None]:
    """Comparisons need no gradient, and the same random weights each time."""
    torch.manual_seed(0)
    with torch.no_grad():
        yield
