"""Ordinary files only: a path is checked before it is opened, and once more when it is open."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from clearhead.errors import CheckpointError, ClearheadError

FETCH_AGAIN = "the download or copy was probably cut short: fetch the file again."
LARGEST_TEXT = 256 * 2**20  # bytes; the largest tokenizers in use are below 50 MB
_WITHOUT_WAITING = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def regular_file_size(
    path: Path,
    wanted: str,
    *,
    may_be_empty: bool = False,
    error_kind: type[ClearheadError] = CheckpointError,
) -> int:
    """Return the size in bytes of ``path``; ``wanted`` names the file kind in error texts.

    Devices and pipes are refused before they are opened: opening a pipe would wait forever.

    Raises:
        CheckpointError: (or ``error_kind``) the path does not exist, is not an ordinary file, may
            not be read or is empty.
    """
    try:
        status = path.stat()
    except (OSError, ValueError) as error:
        raise error_kind(
            f"wanted a {wanted} file, but {path} cannot be read: {reason(error)}.",
            hint="check the path and its permissions.",
        ) from error
    _check_ordinary(status, path, wanted, error_kind)
    if not os.access(path, os.R_OK):
        raise error_kind(f"wanted a {wanted} file, but {path} may not be read by this user.")
    if status.st_size == 0 and not may_be_empty:
        raise error_kind(f"wanted a {wanted} file, but {path} is empty.", hint=FETCH_AGAIN)
    return status.st_size


@contextmanager
def open_regular_file(
    path: Path,
    wanted: str,
    *,
    may_be_empty: bool = False,
    error_kind: type[ClearheadError] = CheckpointError,
) -> Iterator[BinaryIO]:
    """Yield an ordinary file, open for reading; whatever the system says becomes an ``error_kind``.

    What is open is checked again: between check and opening, the path may have become a pipe.

    Raises:
        CheckpointError: (or ``error_kind``) as :func:`regular_file_size`, or reading fails.
    """
    regular_file_size(path, wanted, may_be_empty=may_be_empty, error_kind=error_kind)
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | _WITHOUT_WAITING), "rb") as file:
            _check_ordinary(os.fstat(file.fileno()), path, wanted, error_kind)
            yield file
    except OSError as error:
        raise error_kind(
            f"wanted a {wanted} file, but {path} cannot be read: {reason(error)}."
        ) from error


def read_regular_file(
    path: Path,
    wanted: str,
    *,
    largest: int = LARGEST_TEXT,
    may_be_empty: bool = False,
    error_kind: type[ClearheadError] = CheckpointError,
) -> bytes:
    """Return the bytes of ``path``, which must be an ordinary file of at most ``largest`` bytes.

    Raises:
        CheckpointError: (or ``error_kind``) as :func:`regular_file_size`, or the file is too large.
    """
    options = {"may_be_empty": may_be_empty}
    with open_regular_file(path, wanted, **options, error_kind=error_kind) as file:
        size = os.fstat(file.fileno()).st_size
        data = _read_at_most(file, size, largest) if size <= largest else b""
    if max(size, len(data)) > largest:
        raise error_kind(
            f"wanted a {wanted} file, but {path} has {max(size, len(data)):,} bytes; none has more "
            f"than {largest:,}."
        )
    return data


def _read_at_most(file: BinaryIO, size: int, largest: int) -> bytes:
    """Read a file of this size; one that grows, or knows no size, is not read without end."""
    data = file.read(size + 1)
    while size < len(data) <= largest and (more := file.read(2**20)):
        data += more
    return data


def reason(error: Exception) -> str:
    """Return the operating system's own words for ``error``, without path and number."""
    return getattr(error, "strerror", None) or str(error)


def _check_ordinary(
    status: os.stat_result, path: Path, wanted: str, error_kind: type[ClearheadError]
) -> None:
    if not stat.S_ISREG(status.st_mode):
        what = "a folder" if stat.S_ISDIR(status.st_mode) else "not an ordinary file"
        raise error_kind(f"wanted a {wanted} file, but {path} is {what}.")
