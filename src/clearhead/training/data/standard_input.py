"""Standard input as a source of text: ``-`` in place of a path.

A corpus is read more than once, and a pipe can be read only once: so it is copied to a file first.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from clearhead.errors import InputError
from clearhead.files.atomic_write import temporary_path


@contextmanager
def copied(place: Path | None) -> Iterator[Path]:
    """A file with what standard input holds; it is removed at the end.

    ``place`` is the folder for it; the system's folder for temporary files if there is none.
    """
    if sys.stdin is None or sys.stdin.isatty():
        raise InputError(
            "standard input is a terminal, not a text.", hint="cat FILES | clearhead train -"
        )
    folder = Path(tempfile.gettempdir()) if place is None else place
    path = temporary_path(folder / "standard-input")
    try:
        with path.open("xb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield path
    finally:
        path.unlink(missing_ok=True)
