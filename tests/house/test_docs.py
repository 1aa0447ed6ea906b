"""What README, docs and docstrings show is executed."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import clearhead

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
MODULES = sorted(
    info.name
    for info in pkgutil.walk_packages(clearhead.__path__, "clearhead.")
    if not info.name.startswith("clearhead.__main__")
)


def blocks_of(page: Path, *, download: bool = False) -> list[str]:
    """Python blocks of a page; those marked ``python download`` need a default model."""
    fence = r"^```python( download)?\n" if download else r"^```python()\n"
    found = re.findall(fence + r"(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    return [block for _, block in found]


def run_blocks(page: Path, blocks: list[str]) -> None:
    """The blocks of one page run in order, as one program; ``# → text`` must be what came out."""
    program = {"__name__": "__main__"}
    for block in blocks:
        exec(compile(block, str(page), "exec"), program)
        for expression, shown in re.findall(r"^(\S.*?)\s+# → (.*)$", block, re.MULTILINE):
            assert str(eval(expression, program)).strip() == shown.strip()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_code_on_the_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_blocks(page, blocks_of(page))


@pytest.mark.download
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if "```python download" in page.read_text()],
    ids=lambda p: p.stem,
)
def test_code_with_default_models_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_blocks(page, blocks_of(page, download=True))


@pytest.mark.parametrize("name", MODULES)
def test_doctests(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(path.read_text(), str(path), "exec"), {"__name__": "__main__"})


def test_there_are_pages_with_code() -> None:
    assert sum(len(blocks_of(page)) for page in PAGES) >= 3
