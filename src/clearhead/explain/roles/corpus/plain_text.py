"""Reads plain text line by line and splits it into sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from clearhead.errors import InputError

# A full stop, perhaps a closing quote, white space, and something that begins a sentence.
_END = re.compile(r"(?<=[.!?…])(?:[\"”’)\]]+)?\s+(?=[\"“‘(\[]?[A-Z0-9¿¡])")
_SHORT = re.compile(r"(?:\b(?:[A-Z]|Mr|Mrs|Ms|Dr|St|vs|etc|e\.g|i\.e|cf|No)\.)$")
LONGEST = 10_000  # characters of a sentence; what has no full stops is cut there


def read_text(path: Path) -> Iterator[str]:
    """The sentences of a text file."""
    try:
        with path.open(encoding="utf-8-sig") as lines:
            yield from sentences_in(lines)
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not UTF-8 (byte {error.start}).",
            hint="a corpus is plain text in UTF-8, a .conllu file or a .tsv of coreference.",
        ) from None


def sentences_in(lines: Iterable[str]) -> Iterator[str]:
    """Sentences of lines; a blank line ends a paragraph, a line break is a space."""
    paragraph = ""
    for line in lines:
        line = " ".join(line.split())
        if line:
            paragraph = f"{paragraph} {line}" if paragraph else line
        if not line or len(paragraph) > LONGEST:
            yield from _cut(paragraph)
            paragraph = ""
    yield from _cut(paragraph)


def _cut(paragraph: str) -> Iterator[str]:
    start = 0
    for end in _END.finditer(paragraph):
        piece = paragraph[start : end.end()].strip()
        if not _SHORT.search(piece):
            yield piece
            start = end.end()
    rest = paragraph[start:].strip()
    if rest:
        yield rest[:LONGEST]
