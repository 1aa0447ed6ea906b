"""The tiny models, each made once in a session."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import jaxtyping
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))  # tiny_models serves other folders' tests too


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], object]:
    """A tiny model by name: transformers' and ours."""
    import transformers
    from tiny_models import make_tiny

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    folder = tmp_path_factory.mktemp("tiny")
    return cache(lambda name: make_tiny(name, folder / name))


@pytest.fixture
def unchecked() -> Iterator[None]:
    """As in production: shapes are not checked by the test's hook, only by our own errors."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(autouse=True)
def quietly() -> Iterator[None]:
    """Comparisons need no gradient, and models this small no second thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    with torch.no_grad():
        yield
    torch.set_num_threads(threads)
