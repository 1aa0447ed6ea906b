"""A file as a stream of text: compressed or not, in UTF-8, UTF-16 or UTF-32, a block at a time.

How a file is compressed is told by its first bytes, not by its name. UTF-16 and UTF-32 are told by
their byte-order mark; everything else must be UTF-8. Line ends of Windows become ``\\n``.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from clearhead.errors import InputError
from clearhead.files.regular_file import open_regular_file

BLOCK = 1 << 20  # bytes that are read at once
MAGIC: dict[bytes, Callable[[BinaryIO], Any]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\0": lzma.LZMAFile,
}
ZSTANDARD = b"\x28\xb5\x2f\xfd"
MARKS = {  # the longer ones first: UTF-32's begins as UTF-16's does
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
SUFFIXES = (".gz", ".bz2", ".xz")  # of compressed files


@contextmanager
def opened(path: Path) -> Iterator[tuple[Any, BinaryIO]]:
    """The bytes of a file, decompressed; and the file itself, whose place tells the progress.

    Raises:
        InputError: it cannot be read, or is compressed in a way that we cannot undo.
    """
    with open_regular_file(path, "text", may_be_empty=True, error_kind=InputError) as file:
        beginning = file.read(8)
        file.seek(0)
        if beginning.startswith(ZSTANDARD):
            raise InputError(
                f"{path} is compressed with Zstandard, which is not read here.",
                hint="decompress it (zstd -d), or give it through standard input: "
                "zstd -dc FILE | clearhead train -",
            )
        openers = [make for magic, make in MAGIC.items() if beginning.startswith(magic)]
        with _damage_told(path):
            yield (openers[0](file) if openers else file), file


@contextmanager
def _damage_told(path: Path) -> Iterator[None]:
    try:
        yield
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise InputError(
            f"{path} is compressed, and damaged or cut short: {error}.", hint="fetch it again."
        ) from None
    except OSError as error:
        if error.errno is not None:
            raise
        raise InputError(f"{path} is compressed, and damaged: {error}.") from None  # bz2's way


def blocks(path: Path, data: Any) -> Iterator[str]:
    """The text of a file in blocks, in order; together they are the whole text."""
    block = data.read(BLOCK)
    encoding, skipped = encoding_of(block)
    block, done, carried = block[skipped:] or data.read(BLOCK), skipped, ""
    decode = codecs.getincrementaldecoder(encoding)().decode
    while True:
        done += len(block)
        try:
            text = carried + decode(block, final=not block)
        except UnicodeDecodeError as error:
            raise InputError(
                f"{path} is not {encoding.upper()} text "
                f"(byte {done - len(error.object) + error.start}).",
                hint="convert it, e.g. with iconv; or leave it out.",
            ) from None
        carried = "\r" if block and text.endswith("\r") else ""  # perhaps "\n" follows
        yield text.removesuffix(carried).replace("\r\n", "\n")
        if not block:
            return
        block = data.read(BLOCK)


def encoding_of(beginning: bytes) -> tuple[str, int]:
    """The encoding that a byte-order mark tells, and the length of the mark; else UTF-8."""
    for mark, encoding in MARKS.items():
        if beginning.startswith(mark):
            return encoding, len(mark)
    return "utf-8", 0


def is_text(path: Path, length: int = 1 << 13) -> bool:
    """True if the beginning of a file can be read as text and has no zero characters in it."""
    with opened(path) as (data, _):
        try:
            beginning = cast("bytes", data.read(length))
        except (EOFError, zlib.error, lzma.LZMAError, OSError):
            return False
    encoding, skipped = encoding_of(beginning)
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(beginning[skipped:])
    except UnicodeDecodeError:
        return False
    return bool(beginning) and "\0" not in text


def plain_name(path: Path) -> str:
    """The name of a file without what its compression has added."""
    return path.stem if path.suffix.lower() in SUFFIXES else path.name
