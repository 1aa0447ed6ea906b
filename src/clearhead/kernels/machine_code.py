"""Machine code that numba compiled once, loaded without numba.

numba's own cache needs numba: half a second and 100 MB in every process, before the first kernel
runs. What numba made is only bytes, though, with some addresses missing. So they are kept a second
time, beside numba's cache, with what Python has to know about them, and linked by
``object_file``.

What is kept belongs to the exact sources, versions, processor and settings: a digest of all of them
is in the file's name. A file whose content does not have its own digest is not used. On Linux with
x86-64; elsewhere everything is as numba does it.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib.util
import json
import os
import platform
import secrets
import struct
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from clearhead.kernels.object_file import Image, Missing, UnlinkableError, image_of, link
from clearhead.kernels.threads import names_for_kernels

HERE = Path(__file__).parent
PROCESSOR = Path("/proc/cpuinfo")
DESCRIBES = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags")
LENGTH = struct.Struct("<Q")  # of the description, which comes first
DIGEST_BYTES = 32
# numba's wrapper of a function tells Python of an exception with these. Kernels raise none.
UNCALLED = ("numba_gil_ensure", "numba_gil_release", "NRT_MemInfo_call_dtor")


class MachineCode(NamedTuple):
    """Compiled functions: their addresses by name, callees first, and facts about them (JSON)."""

    addresses: Mapping[str, int]
    facts: Mapping[str, Any] = {}


Made = TypeVar("Made", bound=MachineCode | None)
_lock = threading.RLock()


def machine_code(
    name: str, sources: Sequence[Path], build: Callable[[], Made]
) -> MachineCode | Made:
    """Return compiled functions: those that are kept under this name, or what ``build`` returns.

    Args:
        name: tells kernels apart.
        sources: folders; their modules (``*.py``) are all that the kernel is made from, beside
            those of this folder. If any has changed, the kernel is built anew.
        build: compiles the functions, or loads them from numba's cache. None where it cannot.
    """
    with _lock:
        path = kept_path(name, sources)
        found = None if path is None else _loaded(path)
        if found is not None:
            return found
        built = build()
        if path is not None and built is not None:
            with suppress(OSError, UnlinkableError):
                _keep(path, built)
        return built


def sources_of(module: str) -> tuple[Path, ...]:
    """The folder of a module (its ``__file__``), and ``kernels`` in it."""
    folder = Path(module).parent
    return folder, folder / "kernels"


def is_kept(name: str, sources: Sequence[Path]) -> bool:
    """True if :func:`machine_code` will not need numba."""
    path = kept_path(name, sources)
    return path is not None and path.exists()


# Where.
def kept_path(name: str, sources: Sequence[Path]) -> Path | None:
    """The file for a kernel; None where nothing can be kept."""
    if sys.modules.get("numba", sys) is None:  # somebody took it out of this process
        return None
    surroundings = _surroundings()
    if surroundings is None or Path(".numba_config.yaml").exists():  # settings not known here
        return None
    told = sorted(item for item in os.environ.items() if item[0].startswith("NUMBA_"))
    known = (surroundings, _sources_digest(tuple(sources)), *map(str, told))
    digest = hashlib.sha256("\n".join(known).encode()).hexdigest()[:24]
    return _folder() / f"{name}-{digest}.kernel"


def _folder() -> Path:
    """The folder of numba's cache, if one is named; else beside this module, or the user's."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    if given:
        return Path(given)
    beside = HERE / "__pycache__"
    if os.access(beside if beside.exists() else HERE, os.W_OK):
        return beside
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (cache if cache.is_absolute() else Path.home() / ".cache") / "clearhead" / "kernels"


@functools.cache
def _surroundings() -> str | None:
    """Versions and processor; None where nothing can be kept, or without numba.

    Neither numba nor NumPy is imported for it.
    """
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return None
    known = [sys.version]
    for package, file in (("numba", "_version.py"), ("llvmlite", "_version.py"),
                          ("numpy", "version.py")):  # fmt: skip
        found = importlib.util.find_spec(package)
        if found is None or found.origin is None:
            return None
        version = Path(found.origin).with_name(file)
        known.append(version.read_text(encoding="utf-8") if version.exists() else found.origin)
    try:
        first = PROCESSOR.read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
    except OSError:
        return None
    lines = (line.partition(":") for line in first.splitlines())
    known += [value for name, _, value in lines if name.strip() in DESCRIBES]
    return "\n".join(known)


@functools.cache
def _sources_digest(folders: tuple[Path, ...]) -> str:
    files = [file for place in (HERE, *folders) for file in sorted(place.glob("*.py"))]
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


# Reading and writing. A file is a digest of the rest, the length of a description, the description
# in JSON, and the images of all functions.
def _loaded(path: Path) -> MachineCode | None:
    """The functions of a file; None if it is not there, not whole or cannot be linked here."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, rest = content[:DIGEST_BYTES], content[DIGEST_BYTES:]
    if hashlib.sha256(rest).digest() != digest:
        return None
    (length,) = LENGTH.unpack_from(rest)
    described = json.loads(rest[LENGTH.size : LENGTH.size + length])
    images, place = [], LENGTH.size + length
    for name, size, entry, missing in described["functions"]:
        code = rest[place : place + size]
        images.append((name, Image(code, entry, [Missing(*each) for each in missing])))
        place += size
    try:
        return MachineCode(link(images, _address_of), described["facts"])
    except UnlinkableError:
        return None


def _address_of(symbol: str) -> int | None:
    """The address of a function of ours, of Python, of C or of mathematics."""
    ours = names_for_kernels().get(symbol)
    if ours is not None:
        return ours
    found = getattr(ctypes.CDLL(None), "abort" if symbol in UNCALLED else symbol, None)
    return None if found is None else ctypes.cast(found, ctypes.c_void_p).value


def _keep(path: Path, built: MachineCode) -> None:
    """Write a file, whole or not at all; nothing if numba has not kept the objects itself."""
    from clearhead.kernels.compiling import object_at

    described, code = [], []
    for name, address in built.addresses.items():
        found = object_at(address)
        if found is None:
            return
        symbol, content = found
        image = image_of(content, symbol)
        described.append((name, len(image.content), image.entry, image.missing))
        code.append(image.content)
    start = json.dumps({"functions": described, "facts": built.facts}).encode()
    rest = b"".join([LENGTH.pack(len(start)), start, *code])
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        temporary.write_bytes(hashlib.sha256(rest).digest() + rest)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
