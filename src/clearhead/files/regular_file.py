"""Checks of a path before it is opened: an ordinary, readable file of a sensible size."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from clearhead.errors import CheckpointError

FETCH_AGAIN = "the download or copy was probably cut short: fetch the file again."
LARGEST_TEXT = 256 * 2**20  # bytes; the largest tokenizers in use are below 50 MB


def regular_file_size(path: Path, wanted: str, *, may_be_empty: bool = False) -> int:
    """Return the size in bytes of ``path``; ``wanted`` names the file kind in error texts.

    Devices and pipes are refused before they are opened: opening a pipe would wait forever.

    Raises:
        CheckpointError: the path does not exist, is not an ordinary file, may not be read or is
            empty.
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
    if status.st_size == 0 and not may_be_empty:
        raise CheckpointError(f"wanted a {wanted} file, but {path} is empty.", hint=FETCH_AGAIN)
    return status.st_size


def read_regular_file(
    path: Path, wanted: str, *, largest: int = LARGEST_TEXT, may_be_empty: bool = False
) -> bytes:
    """Return the bytes of ``path``, which must be an ordinary file of at most ``largest`` bytes.

    Raises:
        CheckpointError: as :func:`regular_file_size`, or the file is too large.
    """
    size = regular_file_size(path, wanted, may_be_empty=may_be_empty)
    if size > largest:
        raise CheckpointError(
            f"wanted a {wanted} file, but {path} has {size:,} bytes; none has more than "
            f"{largest:,}."
        )
    try:
        return path.read_bytes()
    except OSError as error:
        raise CheckpointError(
            f"wanted a {wanted} file, but {path} cannot be read: {reason(error)}."
        ) from error


def reason(error: Exception) -> str:
    """Return the operating system's own words for ``error``, without path and number."""
    return getattr(error, "strerror", None) or str(error)
