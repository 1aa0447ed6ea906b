"""The rules that keep the house in order: import order, light import, the README's tree."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house import tree

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "clearhead"
ROOMS = ("visible", "errors", "axes", "lazy", "arguments", "tensors", *tree.ROOMS)
MOST_MODULES = 22  # of one folder
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


def test_the_page_of_the_tree_is_the_tree_on_disk() -> None:
    shown = tree.FILES.search(tree.PAGE.read_text())
    assert shown is not None, "docs/tree.md must carry the tree of src/clearhead/"
    assert shown.group() == tree.tree(), "run: python -m tests.house.tree"


def test_the_readme_maps_the_folders() -> None:
    shown = tree.FOLDERS.findall(tree.README.read_text())
    assert shown == tree.rooms_on_disk(), "README.md: one row for each folder, in this order"


def folders() -> list[Path]:
    return sorted(path.parent for path in SOURCE.rglob("__init__.py") if path.parent != SOURCE)


@pytest.mark.parametrize("folder", folders(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_folder_is_crowded(folder: Path) -> None:
    modules = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
    assert len(modules) <= MOST_MODULES, f"{folder} has {len(modules)} modules: a room is missing"


def run_python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout


def test_import_is_light() -> None:
    """Without anything heavy it takes milliseconds."""
    code = "import sys, clearhead; print(*sorted(sys.modules), sep='\\n')"
    modules = run_python(code).splitlines()
    heavy = {"torch", "numpy", "numba", "rich", "click", "tokenizers", "transformers", "jinja2"}
    assert not heavy & set(modules)
    assert not [name for name in modules if name.startswith("clearhead.attention.")]


def test_function_and_folder_share_the_name_attention() -> None:
    """Whatever is imported first, ``ch.attention`` is the function."""
    for first in ("import clearhead", "from clearhead.attention import masks"):
        code = (
            f"{first}\nimport clearhead as ch\nprint(ch.attention.__name__, callable(ch.attention))"
        )
        assert run_python(code).split() == ["attention", "True"]


@pytest.mark.parametrize("first", ["import clearhead", "from clearhead.attention import masks"])
def test_modules_of_the_folder_attention_are_found(first: str) -> None:
    code = (
        f"{first}\nimport clearhead.attention.fast as fast, clearhead as ch\n"
        "from clearhead.attention import tiles\n"
        "print(fast.__name__, ch.attention.__name__, ch.attention.tiles is tiles)"
    )
    assert run_python(code).split() == ["clearhead.attention.fast", "attention", "True"]


def test_the_list_of_public_names_is_what_type_checkers_see() -> None:
    """``clearhead.__init__``, and every folder that loads its names on first use."""
    found = 0
    for path in SOURCE.rglob("__init__.py"):
        tree = ast.parse(path.read_text())
        homes = [
            ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_HOMES"
        ]
        if not homes:
            continue
        typed = {
            alias.asname: f"{node.module}.{alias.name}"
            for block in tree.body
            if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
            for node in block.body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        modules = {name for name, home in homes[0].items() if typed.get(name) == home}
        listed = {
            name: home if name in modules else f"{home}.{name}" for name, home in homes[0].items()
        }
        assert listed == typed, path.relative_to(ROOT)
        found += 1
    assert found > 3


def test_public_names_are_found_before_they_are_loaded() -> None:
    code = "import clearhead, sys; print(*dir(clearhead)); print('torch' in sys.modules)"
    names, loaded = run_python(code).splitlines()
    import clearhead

    assert set(clearhead.__all__) <= set(names.split())
    assert loaded == "False"


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
    """The import hook of conftest.py reaches every module whose functions annotate shapes."""
    for path in SOURCE.rglob("*.py"):
        name = ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)
        nodes = list(ast.walk(ast.parse(path.read_text())))
        functions = any(isinstance(node, ast.FunctionDef) for node in nodes)
        if path.name == "__init__.py":
            assert not functions, f"{name} defines functions where no shape is checked"
        elif functions and path.parent.name != "kernels" and "jaxtyping" in imported(nodes):
            spec = importlib.import_module(name).__spec__
            assert spec is not None
            assert "axtyping" in type(spec.loader).__name__, f"{name} is not checked"


def imported(nodes: list[ast.AST]) -> set[str]:
    """The packages that a module imports anywhere, the first word of their names."""
    names = [
        alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names
    ] + [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name.split(".")[0] for name in names}
