"""The lock of a run folder: one process at a time. It ends with its process, even if it is killed.

The operating system holds the lock (``flock`` on Unix), not the existence of a file. Beside it lies
a file that says who has it, for the error that another process gets.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from clearhead.errors import ClearheadError
from clearhead.files.json_file import read_json, write_json
from clearhead.training.run_folder.schema import from_json

LOCK, HOLDER = "lock", "process.json"


class InUseError(ClearheadError):
    """Another process trains in this folder."""


@dataclass(frozen=True)
class Holder:
    """The process that has the lock."""

    pid: int
    host: str


class RunLock:
    """The lock of one run folder; entering it again while holding it is fine."""

    def __init__(self, inside: Path) -> None:
        self._inside = inside
        self._lock = FileLock(inside / LOCK, timeout=0, thread_local=False)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock.

        Raises:
            InUseError: another process has it, or another run in this process.
        """
        self._inside.mkdir(parents=True, exist_ok=True)
        try:
            self._lock.acquire()
        except Timeout:
            raise self._refusal() from None
        try:
            write_json(self._inside / HOLDER, asdict(Holder(os.getpid(), socket.gethostname())))
            yield
        finally:
            self._lock.release()

    def _refusal(self) -> InUseError:
        folder = self._inside.parent
        try:
            path = self._inside / HOLDER
            holder = from_json(Holder, read_json(path), str(path))
        except ClearheadError:  # it has just begun, and has not written its name yet
            return InUseError(f"another process is training in {folder}.", hint=WAIT)
        if (holder.pid, holder.host) == (os.getpid(), socket.gethostname()):
            return InUseError(
                f"this process is training in {folder} already.",
                hint="close the generator of that run first: events.close().",
            )
        return InUseError(
            f"process {holder.pid} on {holder.host} is training in {folder}.", hint=WAIT
        )


WAIT = "wait until it is done, or stop it (Ctrl-C, or kill with its number): it will save first."
