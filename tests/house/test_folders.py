"""Each folder says in its ``__init__.py`` what is in it, and in which order to read it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "clearhead"
FOLDERS = sorted(
    path.parent.relative_to(SOURCE).as_posix()
    for path in SOURCE.rglob("__init__.py")
    if path.parent != SOURCE
)


def unnamed_modules(folder: Path) -> list[str]:
    """The modules that the docstring of the folder does not name as ``` ``module`` ```."""
    docstring = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
    modules = sorted(path.stem for path in folder.glob("*.py") if path.name != "__init__.py")
    return [module for module in modules if f"``{module}``" not in docstring]


@pytest.mark.parametrize("name", FOLDERS)
def test_the_docstring_of_a_folder_names_its_modules(name: str) -> None:
    unnamed = unnamed_modules(SOURCE / name)
    assert not unnamed, f"the docstring of {name}/__init__.py does not name {unnamed}"
