"""Reads coreference from a table: text, the pronoun's span, the antecedent's span, between tabs.

    The kids were scared of the lions, so they left.	38:42	4:8

Spans are characters, the first included and the last not; lines that begin with # are remarks.
Lines with the same text one after the other are one sentence with several pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from clearhead.errors import InputError
from clearhead.explain.roles.corpus.cells import counted
from clearhead.explain.roles.corpus.recognisers import plain_sentence
from clearhead.explain.roles.corpus.sentence import LONGEST, Sentence, Span
from clearhead.files.text_file import text_lines


def read_coreference(path: Path) -> Iterator[Sentence]:
    """The sentences of a file."""
    yield from coreference_sentences(text_lines(path, error_kind=InputError), str(path))


def coreference_sentences(lines: Iterable[str], where: str = "TSV") -> Iterator[Sentence]:
    """The sentences of lines, each with its pairs."""
    waiting: Sentence | None = None
    for number, line in enumerate(lines, start=1):
        line = line.rstrip("\r\n")
        if not line.strip() or line.startswith("#"):
            continue
        cells = line.split("\t")
        if len(cells) != 3:
            raise InputError(
                f"{where}, line {number}: text, pronoun and antecedent are wanted, between tabs; "
                f"{len(cells)} column{'s' * (len(cells) != 1)} came.",
                hint="for example: The kids left, so they …<tab>20:24<tab>4:8",
            )
        text = cells[0]
        if len(text) > LONGEST:
            raise InputError(
                f"{where}, line {number}: a text of {len(text):,} characters; at most {LONGEST:,} "
                "go."
            )
        pair = tuple(_span(cell, text, f"{where}, line {number}") for cell in cells[1:])
        if waiting is not None and waiting.text == text:
            waiting = replace(waiting, coreference=(*waiting.coreference, (pair[0], pair[1])))
            continue
        if waiting is not None:
            yield waiting
        waiting = replace(plain_sentence(text), coreference=((pair[0], pair[1]),))
    if waiting is not None:
        yield waiting


def _span(cell: str, text: str, where: str) -> Span:
    first, _, last = cell.strip().partition(":")
    start, end = counted(first), counted(last)
    if start is None or end is None:
        short = cell if len(cell) <= 40 else f"{cell[:39]}…"
        raise InputError(
            f"{where}: a span is start:end in characters, such as 4:8; {short!r} came."
        )
    if not 0 <= start < end <= len(text):
        raise InputError(
            f"{where}: the span {cell.strip()} does not lie in a text of {len(text)} characters."
        )
    return start, end
