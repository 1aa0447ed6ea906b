"""What lies at a path instead of an ordinary file: pipes, devices, folders, links."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**40)


SPECIAL: dict[str, Callable[[Path], object]] = {
    "fifo": os.mkfifo,
    "folder": Path.mkdir,
    "missing": lambda path: None,
    "empty": lambda path: path.write_bytes(b""),
    "link to itself": lambda path: path.symlink_to(path),
    "link to nothing": lambda path: path.symlink_to("/nowhere/at/all"),
    "link to zeros": lambda path: path.symlink_to("/dev/zero"),
    "link to nowhere": lambda path: path.symlink_to("/dev/null"),
    "link to a full disk": lambda path: path.symlink_to("/dev/full"),
    "link to a folder": lambda path: path.symlink_to("/"),
    "link to memory": lambda path: path.symlink_to("/proc/self/mem"),
    "socket": _socket,
    "a terabyte of nothing": _sparse,
}
"""By name, a function that makes it at a path."""
