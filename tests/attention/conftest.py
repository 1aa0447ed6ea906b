"""What the attention tests share."""

from __future__ import annotations

from collections.abc import Iterator

import jaxtyping
import pytest
import torch


@pytest.fixture
def as_in_production() -> Iterator[None]:
    """Without the import hook's shape checks: our own errors come first, and grids are quick."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny tensors only lose time by being shared out, most of all where tests run side by side."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
