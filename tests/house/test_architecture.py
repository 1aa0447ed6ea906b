"""The rules that keep the house in order: import order, light import, the README's tree."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest
import readme_tree

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "clearhead"
# Following the data (docs/architecture.md). A room imports only from rooms before it.
ROOMS = (
    "errors", "axes", "lazy", "text", "attention", "layers", "models", "checkpoints", "generation",
    "training", "trace", "explain", "views", "web", "cli",
)  # fmt: skip
ABOVE_ALL = ("__init__", "__main__")  # the front doors may use every room


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    """The rooms that a file imports from, type-checking and late imports included."""
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            assert node.level == 0, f"{path}: imports are absolute"
            names = [node.module]
            if node.module == "clearhead":
                names = [f"clearhead.{alias.name}" for alias in node.names]
        rooms |= {name.split(".")[1] for name in names if name.startswith("clearhead.")}
    return rooms - {"__version__"}


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.name))
def test_rooms_import_only_from_rooms_before_them(path: Path) -> None:
    room = room_of(path)
    if room in ABOVE_ALL:
        return
    assert room in ROOMS, f"{room} has no place in the order of rooms"
    later = {other for other in imported_rooms(path) if ROOMS.index(other) > ROOMS.index(room)}
    assert not later, f"{path.relative_to(ROOT)} ({room}) imports from {sorted(later)}"


def test_the_tree_in_the_readme_is_the_tree_on_disk() -> None:
    shown = readme_tree.PATTERN.search(readme_tree.README.read_text())
    assert shown is not None, "the README must carry the tree of src/clearhead/"
    assert shown.group() == readme_tree.tree(), "run: python tests/house/readme_tree.py"


def run_python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout


def test_import_is_light() -> None:
    code = (
        "import sys, time; start = time.perf_counter(); import clearhead;"
        "print(time.perf_counter() - start); print(*sorted(sys.modules), sep='\\n')"
    )
    seconds, *modules = run_python(code).splitlines()
    heavy = {"torch", "numpy", "numba", "rich", "click", "tokenizers", "transformers", "jinja2"}
    assert not heavy & set(modules)
    assert not [name for name in modules if name.startswith("clearhead.attention.")]
    assert float(seconds) < 1.0


def test_function_and_folder_share_the_name_attention() -> None:
    """Whatever is imported first, ``ch.attention`` is the function."""
    for first in ("import clearhead", "from clearhead.attention import masks"):
        code = (
            f"{first}\nimport clearhead as ch\nprint(ch.attention.__name__, callable(ch.attention))"
        )
        assert run_python(code).split() == ["attention", "True"]


def test_every_public_name_loads() -> None:
    import clearhead

    for name in clearhead.__all__:
        assert getattr(clearhead, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        clearhead.nonsense  # noqa: B018


def test_the_library_never_prints() -> None:
    for path in SOURCE.rglob("*.py"):
        if room_of(path) in ("cli", "__main__"):
            continue
        calls = [
            node.lineno
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "print"
        ]
        assert not calls, f"{path.relative_to(ROOT)} prints at lines {calls}"


def test_shapes_are_checked_in_every_module_but_kernels() -> None:
    """The import hook of conftest.py reaches every module with functions in it."""
    for path in SOURCE.rglob("*.py"):
        name = ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)
        functions = [
            node
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.FunctionDef)
        ]
        if path.name == "__init__.py":
            assert not functions, f"{name} defines functions where no shape is checked"
        elif path.stem != "__main__" and not path.stem.endswith("_kernel"):
            spec = importlib.import_module(name).__spec__
            assert spec is not None
            assert "axtyping" in type(spec.loader).__name__, f"{name} is not checked"
