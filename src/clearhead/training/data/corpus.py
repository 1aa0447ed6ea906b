"""Texts to learn from: files, folders, or the reference text that every CPython carries.

A corpus is read as a stream of blocks, as often as somebody needs it; it is never in memory as a
whole. A text file is one document; so is each line of a file of JSON Lines.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from clearhead.errors import InputError
from clearhead.files.regular_file import regular_file_size
from clearhead.training.data import json_lines, text_stream
from clearhead.training.scale import physical_memory

LEFT_OUT_SHOWN = 3  # names of files that a warning repeats


class Block(NamedTuple):
    """A piece of a document; the pieces of all documents follow each other in order."""

    document: int
    text: str
    read: int  # bytes of the corpus that were read so far
    file: int = -1  # the number of its file


@dataclass(frozen=True)
class SourceFile:
    """A file of a corpus, as it was when it was found."""

    path: Path
    size: int
    changed: int  # when it was last changed: nanoseconds, as the file system tells it
    lines: bool  # JSON Lines

    @classmethod
    def at(cls, path: Path, *, lines: bool | None = None) -> SourceFile:
        """The file at a path; whether it has JSON Lines is told by its name, unless given."""
        regular_file_size(path, "text", may_be_empty=True, error_kind=InputError)
        status = path.stat()
        named = Path(text_stream.plain_name(path)).suffix.lower() in json_lines.SUFFIXES
        return cls(path, status.st_size, status.st_mtime_ns, named if lines is None else lines)


class Corpus:
    """Documents from files and folders, in order of names; or texts that are given."""

    def __init__(
        self, files: Sequence[SourceFile] = (), texts: Sequence[str] = (),
        *, field: str | None = None, left_out: Sequence[Path] = (),
    ) -> None:  # fmt: skip
        self.files, self.texts, self.field = tuple(files), texts, field
        self.left_out = tuple(left_out)  # files in folders that are no text
        self.size = sum(file.size for file in files) + sum(map(len, texts))

    @classmethod
    def at(cls, paths: Sequence[str | Path], *, field: str | None = None) -> Corpus:
        """The text files at some paths, and in them if they are folders; hidden ones are not.

        Raises:
            InputError: a path cannot be read, or a folder has no text in it.
        """
        files: list[SourceFile] = []
        left_out: list[Path] = []
        for path in map(Path, paths):
            if path.is_dir():
                found, others = _in_folder(path)
                files += found
                left_out += others
            else:
                files.append(_named(path))
        if field is not None and not any(file.lines for file in files):
            raise InputError(
                f"the field {field!r} changes nothing: no file of these has JSON Lines.",
                hint="leave --field (field=) out, or name the files .jsonl.",
            )
        return cls(files, field=field, left_out=left_out)

    def blocks(self) -> Iterator[Block]:
        """Every document, block by block; documents without any text, too.

        Raises:
            InputError: a file cannot be read, or has changed since the corpus was made.
        """
        number = read = 0
        for text in self.texts:
            for at in range(0, max(1, len(text)), text_stream.BLOCK):
                piece = text[at : at + text_stream.BLOCK]
                read += len(piece)
                yield Block(number, piece, read)
            number += 1
        for place, source in enumerate(self.files):
            following = number
            for block in self._of_file(source, number):
                yield block._replace(read=read + block.read, file=place)
                following = block.document + 1
            read += source.size
            number = following

    def _of_file(self, source: SourceFile, number: int) -> Iterator[Block]:
        with text_stream.opened(source.path) as (data, file):
            _check_unchanged(source, os.fstat(file.fileno()))
            texts = text_stream.blocks(source.path, data)
            if not source.lines:
                for text in texts:
                    yield Block(number, text, file.tell())
            else:
                found = json_lines.documents(texts, source.path, self.field)
                for count, text in enumerate(found):
                    yield Block(number + count, text, file.tell())
            _check_unchanged(source, os.fstat(file.fileno()))

    @property
    def what_was_left_out(self) -> str | None:
        """A sentence about files that are no text; None if there are none."""
        if not self.left_out:
            return None
        names = ", ".join(path.name for path in self.left_out[:LEFT_OUT_SHOWN])
        more = len(self.left_out) - LEFT_OUT_SHOWN
        names += f" and {more:,} more" if more > 0 else ""
        count = len(self.left_out)
        return (
            f"{count:,} {'file is' if count == 1 else 'files are'} no text in UTF-8 or UTF-16 and "
            f"left out: {names}."
        )


def read_documents(paths: Sequence[str | Path], *, field: str | None = None) -> list[str]:
    """All documents of some files and folders, in memory; those that are blank are left out."""
    pieces: dict[int, list[str]] = {}
    for block in Corpus.at(paths, field=field).blocks():
        pieces.setdefault(block.document, []).append(block.text)
    kept = [text for text in map("".join, pieces.values()) if text.strip()]
    if not kept:
        raise InputError(nothing_in(paths))
    return kept


def nothing_in(paths: Sequence[str | Path]) -> str:
    """What to say of texts that are all blank."""
    return (
        f"there is nothing to learn from: {', '.join(map(str, paths)) or 'no text'} holds no text."
    )


def read_text(path: Path) -> str:
    """The text of a file; an ``InputError`` says why it cannot be read.

    Pipes and devices are refused before they are opened, and files that do not fit into memory.
    """
    size = regular_file_size(path, "text", may_be_empty=True, error_kind=InputError)
    most = int(physical_memory())
    if size > most:
        raise InputError(
            f"wanted a text file, but {path} has {size:,} bytes; none has more than {most:,}."
        )
    with text_stream.opened(path) as (data, _):
        return "".join(text_stream.blocks(path, data))


def python_reference() -> list[str]:
    """The topics of Python's own help, a document each (about half a million characters)."""
    from pydoc_data.topics import topics

    return [text for _, text in sorted(topics.items())]


def _named(path: Path) -> SourceFile:
    """A file that somebody named: it must be text."""
    source = SourceFile.at(path)
    if source.size and not source.lines and _has_zeros(path):
        raise InputError(f"{path} is not text: it holds null characters.", hint="leave it out.")
    return source


def _has_zeros(path: Path) -> bool:
    with text_stream.opened(path) as (data, _):
        beginning = data.read(1 << 13)
    encoding, _ = text_stream.encoding_of(beginning)
    return encoding == "utf-8" and b"\0" in beginning


def _in_folder(folder: Path) -> tuple[list[SourceFile], list[Path]]:
    """The text files in a folder, in order of names; and the other files."""
    try:
        paths = [path for path in sorted(folder.rglob("*")) if _visible_file(path, folder)]
    except OSError as error:  # a folder that vanished meanwhile, or may not be read
        raise InputError(f"{folder} cannot be read: {error.strerror or error}.") from None
    full = [path for path in paths if path.stat().st_size]
    texts = [path for path in full if text_stream.is_text(path)]
    if not texts:
        raise InputError(f"{folder} has no text file in it.")
    kept = set(texts)
    return [SourceFile.at(path) for path in texts], [path for path in full if path not in kept]


def _visible_file(path: Path, folder: Path) -> bool:
    hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
    return not hidden and path.is_file()


def _check_unchanged(source: SourceFile, now: os.stat_result) -> None:
    if (now.st_size, now.st_mtime_ns) != (source.size, source.changed):
        raise InputError(
            f"{source.path} has changed while it was being read.",
            hint="begin again when nothing writes to it any more; or give a copy.",
        )
