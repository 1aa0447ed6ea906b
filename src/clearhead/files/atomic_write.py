"""Atomic writing: a reader sees the old file or the whole new one, never a part."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_unfinished: set[Path] = set()


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield an empty temporary file beside ``path``; rename it to ``path`` if nothing went wrong.

    If anything goes wrong, the temporary file is deleted and ``path`` stays as it was. The new file
    has the permissions that ``open`` gives to a new file (0644 with the usual umask), whatever the
    writer in between does. It is on the disk before the rename.

    Raises:
        OSError: the file cannot be written, or ``path`` is a device or a pipe, which a rename would
            replace.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with atomic_write(Path(folder) / "note.txt") as temporary:
    ...         _ = temporary.write_text("whole")
    ...     (Path(folder) / "note.txt").read_text()
    'whole'
    """
    _refuse_special_file(path)
    temporary = temporary_path(path)
    _unfinished.add(temporary)
    try:
        mode = _create(temporary)
        yield temporary
        _flush_to_disk(temporary)
        temporary.chmod(mode)
        temporary.replace(path)
        _flush_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)
        _unfinished.discard(temporary)


def discard_unfinished() -> None:
    """Delete the temporary files of this process; for a process that is about to end at once."""
    for temporary in list(_unfinished):
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def temporary_path(path: Path, ending: str = "part") -> Path:
    """Return a new hidden name beside ``path``, for a file or a folder that will be renamed."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.{ending}")


def _refuse_special_file(path: Path) -> None:
    with suppress(FileNotFoundError):
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise OSError(errno.EINVAL, "it is a device or a pipe", str(path))


def _create(path: Path) -> int:
    """Create an empty file; return the permissions that it got from the umask."""
    with path.open("xb") as file:
        return stat.S_IMODE(os.fstat(file.fileno()).st_mode)


def _flush_to_disk(path: Path) -> None:
    # Some file systems report a full disk only here; the rename must not come before that.
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    """Make the rename itself durable, where the system can: Windows opens no folders."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
