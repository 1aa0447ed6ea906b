"""Texts to learn from: files, folders, or the reference text that every CPython carries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from clearhead.errors import InputError
from clearhead.files.regular_file import read_regular_file
from clearhead.training.scale import physical_memory

BEGINNING = 1 << 13  # bytes that decide whether a file is text


def read_documents(paths: Sequence[str | Path]) -> list[str]:
    """One document for each file, and for each text file in a folder, in order of names."""
    documents = []
    for path in map(Path, paths):
        if path.is_dir():
            found = [file for file in _files_in(path) if _is_text(file, path)]
            if not found:
                raise InputError(f"{path} has no text file in it.")
            documents += [read_text(file) for file in found]
        else:
            documents.append(read_text(path))
    kept = [document for document in documents if document.strip()]
    if not kept:
        raise InputError(
            f"there is nothing to learn from: {', '.join(map(str, paths)) or 'no text'} "
            "holds no text."
        )
    return kept


def read_text(path: Path) -> str:
    """The text of a file; an ``InputError`` says why it cannot be read.

    Pipes and devices are refused before they are opened, and files that do not fit into memory.
    """
    data = read_regular_file(
        path, "text", largest=int(physical_memory()), may_be_empty=True, error_kind=InputError
    )
    try:
        return data.decode("utf-8").removeprefix("\ufeff").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not UTF-8 text (byte {error.start}).", hint="convert it, e.g. with iconv."
        ) from None


def python_reference() -> list[str]:
    """The topics of Python's own help, a document each (about half a million characters)."""
    from pydoc_data.topics import topics

    return [text for _, text in sorted(topics.items())]


def _files_in(folder: Path) -> list[Path]:
    try:
        return sorted(folder.rglob("*"))
    except OSError as error:  # a folder that vanished meanwhile, or may not be read
        raise InputError(f"{folder} cannot be read: {error.strerror or error}.") from None


def _is_text(path: Path, folder: Path) -> bool:
    hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
    if hidden or not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            beginning = file.read(BEGINNING)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None
    try:
        beginning.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(beginning) - 3:  # not just a character that the limit cut
            return False
    return b"\0" not in beginning and bool(beginning)
