"""How docstrings become Markdown for the reference (docs/reference_docstrings.py)."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def rewriting() -> ModuleType:
    pytest.importorskip("griffe", reason="the extra docs is not installed")
    spec = importlib.util.spec_from_file_location("rewriting", DOCS / "reference_docstrings.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_roles_of_sphinx_become_code(rewriting: ModuleType) -> None:
    assert rewriting.as_markdown("see :func:`look` and :mod:`.x`") == "see ``look`` and ``x``"


def test_doctests_become_blocks_of_code(rewriting: ModuleType) -> None:
    text = "Adds.\n\n>>> 1 + 2\n3\n\nMore."
    assert rewriting.as_markdown(text) == "Adds.\n\n```pycon\n>>> 1 + 2\n3\n```\n\nMore."


def test_arguments_that_share_a_line_get_their_own(rewriting: ModuleType) -> None:
    text = "Args:\n    word, head: what to show\n        first.\n    model: any."
    wanted = (
        "Args:\n    head: see ``word``.\n    word: what to show\n        first.\n    model: any."
    )
    assert rewriting.as_markdown(text) == wanted
