"""What must hold of a path before a reader maps it: an ordinary, readable, non-empty file."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from clearhead.errors import CheckpointError


def regular_file_size(path: Path, wanted: str) -> int:
    """Return the size in bytes of ``path``; ``wanted`` names the file kind in error texts.

    Devices and pipes are refused before they are opened: opening a pipe would wait forever.
    """
    try:
        status = path.stat()
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"wanted a {wanted} file, but {path} cannot be read: {reason(error)}.",
            hint="check the path and its permissions.",
        ) from error
    if not stat.S_ISREG(status.st_mode):
        what = "a folder" if stat.S_ISDIR(status.st_mode) else "not an ordinary file"
        raise CheckpointError(f"wanted a {wanted} file, but {path} is {what}.")
    if not os.access(path, os.R_OK):
        raise CheckpointError(f"wanted a {wanted} file, but {path} may not be read by this user.")
    if status.st_size == 0:
        raise CheckpointError(f"wanted a {wanted} file, but {path} is empty.", hint=FETCH_AGAIN)
    return status.st_size


def reason(error: Exception) -> str:
    """Return the operating system's own words for ``error``, without path and number."""
    return getattr(error, "strerror", None) or str(error)


FETCH_AGAIN = "the download or copy was probably cut short: fetch the file again."
