"""Object files of compiled functions, linked into memory.

LLVM writes what numba compiles as an object in ELF: code, constants, and places where an address is
still missing. :func:`image_of` takes one apart, :func:`link` puts it into memory and fills in the
addresses. That is all a linker has to do here, since numba's code asks for absolute addresses only;
an object that wants more is refused. x86-64 on Linux.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

ELF_64, X86_64, RELOCATABLE = b"\x7fELF\x02\x01", 62, 1
TABLE, RELOCATIONS, UNWINDING = 2, 4, 0x70000001  # kinds of sections
NO_BITS = 8
WRITABLE, IN_MEMORY, THREAD_LOCAL = 1, 2, 0x400  # flags of sections
ABSOLUTE_64 = 1  # the one kind of missing address
FILE, COMMON, ABSOLUTE = 4, 0xFFF2, 0xFFF1
READ_AND_RUN = 5  # mprotect's PROT_READ | PROT_EXEC
ALIGNMENT = 64

_HEADER = struct.Struct("<16xHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_MISSING = struct.Struct("<QQq")


class UnlinkableError(Exception):
    """The object is of another kind, or asks for something that is not known here."""


class Missing(NamedTuple):
    """A place in an image that wants the address of a symbol, plus a number.

    The symbol ``None`` is the beginning of the image itself.
    """

    place: int
    symbol: str | None
    plus: int


class Image(NamedTuple):
    """Bytes as they will be in memory, where the function begins, and what is missing."""

    content: bytes
    entry: int
    missing: Sequence[Missing]


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    start: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


class _Symbol(NamedTuple):
    name: str
    section: int
    value: int
    size: int


def image_of(code: bytes, function: str) -> Image:
    """Take the object file of a function apart.

    Raises:
        UnlinkableError: it is no such object, or needs more than absolute addresses.
    """
    try:
        return _image(code, function)
    except (struct.error, IndexError, ValueError) as error:
        raise UnlinkableError("the object ends early") from error


def _image(code: bytes, function: str) -> Image:
    sections = _sections(code)
    symbols = _symbols(code, sections)
    content = bytearray()
    starts: dict[int, int] = {}  # of sections in the image
    for number, section in enumerate(sections):
        if not section.flags & IN_MEMORY or section.kind == UNWINDING:
            continue
        if section.flags & (WRITABLE | THREAD_LOCAL) or section.kind == NO_BITS:
            raise UnlinkableError("it has variables")
        starts[number] = _appended(
            content, code[section.start : section.start + section.size], section.alignment
        )
    places: list[int | None] = [_place(symbol, starts, content) for symbol in symbols]
    missing = []
    for section in sections:
        if section.kind != RELOCATIONS or section.info not in starts:
            continue
        for offset, info, plus in _MISSING.iter_unpack(
            code[section.start : section.start + section.size]
        ):
            if info & 0xFFFFFFFF != ABSOLUTE_64:
                raise UnlinkableError(f"it asks for an address of kind {info & 0xFFFFFFFF}")
            symbol, place = symbols[info >> 32], places[info >> 32]
            wanted = (symbol.name, plus) if place is None else (None, place + plus)
            missing.append(Missing(starts[section.info] + offset, *wanted))
    found = {symbol.name: place for symbol, place in zip(symbols, places, strict=True)}
    entry = found.get(function)
    if entry is None:
        raise UnlinkableError(f"it has no function {function}")
    return Image(bytes(content), entry, missing)


def _sections(code: bytes) -> list[_Section]:
    kind, machine, _, _, _, table, _, _, _, _, size, count, _ = _HEADER.unpack_from(code)
    if code[: len(ELF_64)] != ELF_64 or (kind, machine) != (RELOCATABLE, X86_64):
        raise UnlinkableError("it is no object for x86-64")
    return [_Section(*_SECTION.unpack_from(code, table + size * i)) for i in range(count)]


def _symbols(code: bytes, sections: list[_Section]) -> list[_Symbol]:
    tables = [section for section in sections if section.kind == TABLE]
    if len(tables) != 1:
        raise UnlinkableError("it has no table of symbols")
    names = sections[tables[0].link].start
    found = []
    for name, info, _, section, value, size in _SYMBOL.iter_unpack(
        code[tables[0].start : tables[0].start + tables[0].size]
    ):
        start = names + name
        text = code[start : code.index(b"\0", start)].decode()
        found.append(_Symbol("" if info & 15 == FILE else text, section, value, size))
    return found


def _place(symbol: _Symbol, starts: dict[int, int], content: bytearray) -> int | None:
    """Where a symbol is in the image; None if it is elsewhere."""
    if symbol.section == COMMON:  # numba's environment of a function: stays empty
        return _appended(content, bytes(symbol.size), symbol.value)
    start = starts.get(symbol.section)
    return None if start is None else start + symbol.value


def _appended(content: bytearray, part: bytes, alignment: int) -> int:
    content += bytes(-len(content) % max(alignment, 1))
    content += part
    return len(content) - len(part)


def link(
    images: Sequence[tuple[str, Image]], address_of: Callable[[str], int | None]
) -> dict[str, int]:
    """Put functions into memory; return their addresses by name. They stay there.

    Args:
        images: functions by name. One may ask for those before it, by their names.
        address_of: where everything else is that they ask for.

    Raises:
        UnlinkableError: nobody knows a symbol, or the system lets nothing be run that was written.
    """
    content, starts = bytearray(), {}
    for name, image in images:
        starts[name] = _appended(content, image.content, ALIGNMENT)
    memory = mmap.mmap(-1, max(len(content), 1))
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    addresses: dict[str, int] = {}
    for name, image in images:
        start = starts[name]
        for place, symbol, plus in image.missing:
            known = base + start if symbol is None else addresses.get(symbol) or address_of(symbol)
            if known is None:
                raise UnlinkableError(f"nobody knows {symbol}")
            struct.pack_into("<Q", content, start + place, known + plus & 0xFFFFFFFFFFFFFFFF)
        addresses[name] = base + start + image.entry
    memory[: len(content)] = bytes(content)
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    if protect(base, len(memory), READ_AND_RUN):
        raise UnlinkableError(f"memory may not be run: error {ctypes.get_errno()}")
    _linked.append(memory)
    return addresses


_linked: list[mmap.mmap] = []  # functions are never taken back
