"""Text files: UTF-8, read with a size limit and written atomically."""

from __future__ import annotations

from pathlib import Path

from clearhead.errors import CheckpointError
from clearhead.files.atomic_write import atomic_write
from clearhead.files.regular_file import read_regular_file


def read_text(path: Path) -> str:
    """Return the text of a file.

    Raises:
        CheckpointError: the path is no ordinary file, too large, or not UTF-8.
    """
    try:
        return read_regular_file(path, "text", may_be_empty=True).decode("utf-8")
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{path} is not UTF-8 text: {error}.") from None


def write_text(path: Path, content: str) -> None:
    """Write a text file atomically, and the folders above it if they are missing.

    Raises:
        OSError: the file cannot be written; an old file is still there then.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as temporary:
        temporary.write_text(content, encoding="utf-8", newline="\n")
