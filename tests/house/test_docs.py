"""What README, docs and docstrings show is executed."""

from __future__ import annotations

import doctest
import importlib
import inspect
import os
import pkgutil
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import clearhead

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
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


# The pages of the course are what its chapters say, and those are run by tests/views/course.
WITH_MODELS = [
    page
    for page in PAGES
    if "```python download" in page.read_text() and page.parent.name != "learn"
]


@pytest.mark.download
@pytest.mark.parametrize("page", WITH_MODELS, ids=lambda p: p.stem)
def test_code_with_default_models_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_blocks(page, blocks_of(page, download=True))


@pytest.mark.parametrize("name", MODULES)
def test_doctests(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


@pytest.mark.parametrize(
    "path",
    [path for path in EXAMPLES if path.stem != "induction_heads"],
    ids=lambda path: path.stem,
)
def test_example_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(path.read_text(), str(path), "exec"), {"__name__": "__main__"})


def test_the_example_of_induction_heads(tmp_path: Path) -> None:
    """Its beginning: the head comes later than a test may take."""
    main = runpy.run_path(str(ROOT / "examples" / "induction_heads.py"))["main"]
    found = main(tmp_path / "run", steps=6, every=3)
    assert list(found) == [0, 3, 6]
    for heads in found.values():
        assert sorted(heads) == [f"L{layer}H{head}" for layer in range(2) for head in range(4)]
        assert all(0.02 < weight < 0.3 for weight in heads.values())  # of about 12 that are seen


def test_there_are_pages_with_code() -> None:
    assert sum(len(blocks_of(page)) for page in PAGES) >= 3


HISTORY = {"log", "releases", "decisions"}  # pages that may name files of the past
PATH = re.compile(r"`((?:src|tests|docs|benchmarks|examples)/[\w./-]*)`|`([a-z_]+/[\w/]+\.py)`")


@pytest.mark.parametrize(
    "page",
    [page for page in [*PAGES, ROOT / "CONTRIBUTING.md"] if page.stem not in HISTORY],
    ids=lambda page: page.stem,
)
def test_files_that_a_page_names_exist(page: Path) -> None:
    """A path begins at the root of the repository or in ``src/clearhead``."""
    named = {whole or inner for whole, inner in PATH.findall(page.read_text())}
    places = (ROOT, ROOT / "src" / "clearhead")
    missing = [path for path in named if not any((place / path).exists() for place in places)]
    assert not missing, f"{page.name} names files that do not exist: {sorted(missing)}"


def test_every_file_that_the_readme_names_is_there() -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(links) > 20
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


# Names whose example is still to be written. A test keeps this list from growing stale.
WITHOUT_EXAMPLE: frozenset[str] = frozenset()


def examples() -> str:
    """All code that is executed: blocks of the pages, examples, doctests."""
    parts = [block for page in PAGES for block in blocks_of(page, download=True)]
    parts += [path.read_text() for path in EXAMPLES]
    finder = doctest.DocTestFinder()
    for name in MODULES:
        for found in finder.find(importlib.import_module(name)):
            parts += [example.source for example in found.examples]
    return "\n".join(parts)


def test_every_public_name_has_an_executed_example() -> None:
    code = examples()
    called = r"\bch\.{0}\b|(?<![\w.]){0}\("  # ch.name anywhere; name(…) in its own doctest
    without = {name for name in clearhead.__all__ if not re.search(called.format(name), code)}
    assert without == WITHOUT_EXAMPLE


@pytest.mark.parametrize("name", sorted(clearhead.__all__))
def test_docstrings_of_public_functions_are_complete(name: str) -> None:
    public = getattr(clearhead, name)
    if not inspect.isfunction(public):
        return
    docstring = inspect.getdoc(public) or ""
    missing = [part for part in ("Args:", "Raises:", ">>> ") if part not in docstring]
    if "Returns:" not in docstring and "Yields:" not in docstring:
        missing.append("Returns: or Yields:")
    assert not missing


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built documentation. A broken link or a missing name fails the build."""
    pytest.importorskip("mkdocs", reason="the extra docs is not installed")
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    paths = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        build, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": paths}
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    page = (site / "reference" / "index.html").read_text()
    entries = set(re.findall(r'<h3 id="([\w.]+)"', page))
    for name in set(clearhead.__all__) - {"__version__"}:
        found = getattr(clearhead, name)
        path = f"{found.__module__}.{name}" if hasattr(found, "__module__") else found.__name__
        assert path in entries, f"{name} has no entry in the reference"


def test_the_site_needs_no_network(site: Path) -> None:
    fetched = re.compile(
        r"<(?:script|img|iframe)[^>]* src=\"(?:https?:)?//|<link[^>]* href=\"https?://"
    )
    for page in site.rglob("*.html"):
        assert not fetched.search(page.read_text()), page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(?:https?:)?//|@import", sheet.read_text()), sheet
