"""Text files: UTF-8, read whole with a size limit or line by line, and written atomically."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

from clearhead.errors import CheckpointError, ClearheadError
from clearhead.files.atomic_write import atomic_write
from clearhead.files.regular_file import LARGEST_TEXT, open_regular_file, read_regular_file

LONGEST_PART = 2**20  # characters of a line that are given at once


def read_text(
    path: Path,
    *,
    largest: int = LARGEST_TEXT,
    error_kind: type[ClearheadError] = CheckpointError,
) -> str:
    """Return the text of a file.

    Raises:
        CheckpointError: (or ``error_kind``) the path is no ordinary file, too large, or not UTF-8.
    """
    data = read_regular_file(
        path, "text", largest=largest, may_be_empty=True, error_kind=error_kind
    )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise error_kind(f"{path} is not UTF-8 text: {error}.") from None


def text_lines(path: Path, *, error_kind: type[ClearheadError] = CheckpointError) -> Iterator[str]:
    """Yield the lines of a text file of any length, in memory that does not grow with it.

    A byte order mark is left out. A line of more than ``LONGEST_PART`` characters comes in several
    parts, of which only the last ends with a line break.

    Raises:
        CheckpointError: (or ``error_kind``) the path is no ordinary file, or not text in UTF-8.
    """
    number = 1
    with open_regular_file(path, "text", may_be_empty=True, error_kind=error_kind) as file:
        try:
            lines = io.TextIOWrapper(file, encoding="utf-8-sig")
            while line := lines.readline(LONGEST_PART):
                if "\0" in line:
                    raise error_kind(f"{path} is not text: line {number} holds a null character.")
                yield line
                number += line.endswith("\n")
        except UnicodeDecodeError:
            raise error_kind(
                f"{path} is not UTF-8 (near line {number}).", hint="convert the file to UTF-8."
            ) from None


def write_text(path: Path, content: str) -> None:
    """Write a text file atomically, and the folders above it if they are missing.

    Raises:
        OSError: the file cannot be written; an old file is still there then.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as temporary:
        temporary.write_text(content, encoding="utf-8", newline="\n")
