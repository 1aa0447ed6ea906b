"""The tree in the README, made from the docstrings: ``python tests/house/readme_tree.py``."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "clearhead"
README = ROOT / "README.md"
ROOMS = (
    "text", "attention", "layers", "models", "checkpoints", "generation", "training", "trace",
    "explain", "views", "web", "cli",
)  # fmt: skip
PATTERN = re.compile(r"```text\nsrc/clearhead/\n.*?```", re.DOTALL)
REMARK_COLUMN, WIDTH = 28, 118


def tree() -> str:
    """Folders in the order of the data, files by name, each with its docstring's first line."""
    lines = ["```text", "src/clearhead/"]
    lines += [_line(path, 2) for path in sorted(SOURCE.glob("*.py"))]
    for room in ROOMS:
        lines += _folder(SOURCE / room, 2)
    return "\n".join([*lines, "```"])


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
    return text.split("\n", 1)[0].rstrip(".:").replace("``", "")


def main() -> None:
    README.write_text(PATTERN.sub(lambda _: tree(), README.read_text()))


if __name__ == "__main__":
    main()
