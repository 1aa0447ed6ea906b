"""Reads plain text line by line and splits it into sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from clearhead.errors import InputError
from clearhead.explain.roles.corpus.sentence import LONGEST
from clearhead.files.text_file import text_lines

# A full stop, perhaps a closing quote, white space, and something that begins a sentence.
_END = re.compile(r"(?<=[.!?…])(?:[\"”’)\]]+)?\s+(?=[\"“‘(\[]?[A-Z0-9¿¡])")
_SHORT = re.compile(r"(?:\b(?:[A-Z]|Mr|Mrs|Ms|Dr|St|vs|etc|e\.g|i\.e|cf|No)\.)$")
LAST_WORD = 12  # characters that hold the longest of them, what is before it and a space


def read_text(path: Path) -> Iterator[str]:
    """The sentences of a text file."""
    yield from sentences_in(text_lines(path, error_kind=InputError))


def sentences_in(lines: Iterable[str]) -> Iterator[str]:
    """Sentences of lines; a blank line ends a paragraph, a line break is a space.

    What has no full stops is cut after ``LONGEST`` characters.
    """
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
        # Only the last word can be an abbreviation: searching more takes quadratic time.
        if not _SHORT.search(paragraph[max(start, end.end() - LAST_WORD) : end.end()].strip()):
            yield from _parts(paragraph[start : end.end()].strip())
            start = end.end()
    yield from _parts(paragraph[start:].strip())


def _parts(sentence: str) -> Iterator[str]:
    return (sentence[at : at + LONGEST] for at in range(0, len(sentence), LONGEST))
