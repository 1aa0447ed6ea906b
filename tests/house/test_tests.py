"""The rules of the tests: each module has its own, and they need no tricks to find the code."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.slow import SLOW

ROOT = Path(__file__).resolve().parents[2]
SOURCE, TESTS = ROOT / "src" / "clearhead", ROOT / "tests"


def does_something(node: ast.AST) -> bool:
    """True if it is a function with more than a docstring and ``...`` in it."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    return any(
        not (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant))
        for line in node.body
    )


def has_behaviour(path: Path) -> bool:
    return any(map(does_something, ast.walk(ast.parse(path.read_text()))))


def place_of_test(path: Path) -> Path:
    """Where the test of a module has to be: the same folders, and ``test_`` before the name."""
    inside = path.relative_to(SOURCE)
    return TESTS / inside.parent / f"test_{inside.name}"


def modules_without_test() -> set[str]:
    return {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if not path.name.startswith("__")
        and has_behaviour(path)
        and not place_of_test(path).exists()
    }


def test_every_module_with_behaviour_has_a_test_module() -> None:
    missing = sorted(modules_without_test())
    assert not missing, f"no test module of the same name in tests/: {missing}"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def f() -> int:\n    return 3", True),
        ("class A:\n    async def f(self) -> None:\n        await self.g()", True),
        ("class A:\n    def f(self) -> None:\n        'Only a promise.'\n        ...", False),
        ("NUMBERS = [3, 5]", False),
    ],
)
def test_behaviour_is_a_function_with_a_body(code: str, expected: bool, tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(code)
    assert has_behaviour(module) is expected


@pytest.mark.parametrize(
    "folder", sorted({path.parent for path in TESTS.rglob("*.py")}), ids=lambda path: str(path.name)
)
def test_every_folder_of_tests_is_a_package(folder: Path) -> None:
    assert (folder / "__init__.py").exists(), f"{folder.relative_to(ROOT)} has no __init__.py"


def changes_path(node: ast.AST) -> bool:
    """True if it is ``sys.path``."""
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "path"
        and isinstance(node.value, ast.Name)
        and node.value.id == "sys"
    ) or (
        isinstance(node, ast.ImportFrom)
        and node.module == "sys"
        and any(alias.name == "path" for alias in node.names)
    )


def test_no_test_touches_the_import_path() -> None:
    """Tests are a package: ``from tests.shared.x import y``."""
    found = [
        str(path.relative_to(ROOT))
        for path in TESTS.rglob("*.py")
        if any(map(changes_path, ast.walk(ast.parse(path.read_text()))))
    ]
    assert not found, f"sys.path is used in {found}"


def test_every_slow_test_exists() -> None:
    names = {
        node.name
        for path in TESTS.rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
    }
    assert sorted(SLOW - names) == [], "renamed or deleted, so change tests/slow.py"
