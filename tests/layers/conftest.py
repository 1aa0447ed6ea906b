"""Every test of this folder computes on one thread."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _on_one_thread(one_thread: None) -> None:
    """See ``one_thread``."""
