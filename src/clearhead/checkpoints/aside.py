"""Writing aside and renaming: a reader sees the old file or the whole new one, never a part."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written_aside(path: Path) -> Iterator[Path]:
    """Yield a path beside ``path`` to write to; rename it to ``path`` if nothing went wrong.

    If anything does go wrong, the half-written file is deleted and ``path`` stays as it was.
    """
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        yield aside
        _flush_to_disk(aside)
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def _flush_to_disk(path: Path) -> None:
    # Some file systems report a full disk only here; the rename must not come before that.
    with path.open("rb+") as file:
        os.fsync(file.fileno())
