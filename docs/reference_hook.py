"""The reference page of the site: one entry for each name of ``clearhead.__all__``, by folder.

``mkdocs.yml`` names this file as a hook. ``reference.md`` holds one line,
``<!-- public names -->``; the build puts the entries there, and mkdocstrings fills them from the
docstrings. A name that cannot be found is an error of ``mkdocs build --strict``.
"""

from __future__ import annotations

import types
from typing import Any

import clearhead

PLACE = "<!-- public names -->"
FOLDERS = (
    "errors", "files", "text", "kernels", "attention", "layers", "models", "checkpoints", "engine",
    "generation", "training", "trace", "explain", "views", "studio", "cli",
)  # fmt: skip


def public_names() -> list[str]:
    """The names that have an entry: all public ones but the version."""
    return sorted((name for name in clearhead.__all__ if name != "__version__"), key=str.lower)


def path_of(name: str) -> str:
    """Where a public name is defined: ``look`` → ``clearhead.views.looking.look``."""
    found = getattr(clearhead, name)
    if isinstance(found, types.ModuleType):
        return found.__name__
    return f"{found.__module__}.{found.__qualname__}"


def entries() -> str:
    """The Markdown of all entries: a heading for each folder, a line for each name."""
    folders: dict[str, list[str]] = {}
    for name in public_names():
        folders.setdefault(path_of(name).split(".")[1], []).append(name)
    lines = []
    for folder in sorted(folders, key=_order):
        lines += [f"## {folder}", ""]
        for name in folders[folder]:
            lines += [f"::: {path_of(name)}", ""]
    return "\n".join(lines)


def _order(folder: str) -> int:
    """Folders in the order of the data, as the table of architecture.md has them."""
    return FOLDERS.index(folder) if folder in FOLDERS else len(FOLDERS)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the entries into the page that asks for them (called by mkdocs)."""
    return markdown.replace(PLACE, entries()) if PLACE in markdown else markdown
