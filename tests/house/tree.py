"""``docs/tree.md``, made from the docstrings: ``python -m tests.house.tree`` rewrites it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "clearhead"
PAGE = ROOT / "docs" / "tree.md"
README = ROOT / "README.md"
# Following the data (docs/architecture.md). A room imports only from rooms before it.
ROOMS = (
    "files", "text", "kernels", "attention", "layers", "models", "checkpoints", "engine",
    "generation", "training", "trace", "explain", "views", "studio", "cli",
)  # fmt: skip
FILES = re.compile(r"```text\nsrc/clearhead/\n.*?```", re.DOTALL)
FOLDERS = re.compile(r"^\| `([a-z/]+)/` \|", re.MULTILINE)  # the first column of the README's map
REMARK_COLUMN, WIDTH = 28, 118


def tree() -> str:
    """Folders in the order of the data, files by name, each with its docstring's first line."""
    lines = ["```text", "src/clearhead/"]
    lines += [_line(path, 2) for path in sorted(SOURCE.glob("*.py"))]
    for room in ROOMS:
        lines += _folder(SOURCE / room, 2)
    return "\n".join([*lines, "```"])


def rooms_on_disk() -> list[str]:
    """The folders of ``src/clearhead``, in the order of the data."""
    return [room for room in ROOMS if (SOURCE / room / "__init__.py").exists()]


def _folder(folder: Path, indent: int) -> list[str]:
    if not (folder / "__init__.py").exists():
        return []
    lines = [_shown(" " * indent + folder.name + "/", _remark(folder / "__init__.py"))]
    files = sorted(path for path in folder.glob("*.py") if path.name != "__init__.py")
    lines += [_line(path, indent + 2) for path in files]
    for inner in sorted(path for path in folder.iterdir() if path.is_dir()):
        lines += _folder(inner, indent + 2)
    return lines


def _line(path: Path, indent: int) -> str:
    return _shown(" " * indent + path.name, _remark(path))


def _shown(entry: str, remark: str) -> str:
    line = f"{entry:<{REMARK_COLUMN}}  {remark}"
    return line if len(line) <= WIDTH else line[: WIDTH - 1].rsplit(" ", 1)[0] + " …"


def _remark(path: Path) -> str:
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    return " ".join(text.split("\n\n", 1)[0].split()).rstrip(".:").replace("``", "")


def main() -> None:
    PAGE.write_text(FILES.sub(lambda _: tree(), PAGE.read_text()))


if __name__ == "__main__":
    main()
