"""Reads CoNLL-U files: words, parts of speech, relations, and their text.

https://universaldependencies.org/format.html. Multiword tokens (``3-4  don't``) give their surface
to the words that they contain; empty nodes (``5.1``) are not in the text and are left out. A
malformed sentence is refused with its line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from clearhead.errors import InputError
from clearhead.explain.roles.corpus.cells import counted
from clearhead.explain.roles.corpus.recognisers import recognised
from clearhead.explain.roles.corpus.sentence import LONGEST, AnnotatedWord, Sentence, Span
from clearhead.files.text_file import text_lines

COLUMNS = 10


@dataclass
class _Rows:
    """The rows of one sentence, as they came."""

    where: str
    line: int = 0
    text: str = ""
    words: list[list[str]] = field(default_factory=list)
    surfaces: list[tuple[int, int, str, bool]] = field(default_factory=list)  # first, last, form
    lines: list[int] = field(default_factory=list)


def read_conllu(path: Path) -> Iterator[Sentence]:
    """The sentences of a file, one after the other."""
    yield from conllu_sentences(text_lines(path, error_kind=InputError), str(path))


def conllu_sentences(lines: Iterable[str], where: str = "CoNLL-U") -> Iterator[Sentence]:
    """The sentences of CoNLL-U lines; a blank line ends each."""
    rows = _Rows(where)
    for number, line in enumerate(lines, start=1):
        line = line.rstrip("\r\n")
        if not line.strip():
            if rows.words:
                yield _sentence(rows)
            rows = _Rows(where)
        elif line.startswith("#"):
            name, _, value = line[1:].partition("=")
            if name.strip() == "text":
                rows.text = value.strip()
        else:
            _take(rows, line, number)
    if rows.words:
        yield _sentence(rows)


def _take(rows: _Rows, line: str, number: int) -> None:
    cells = line.split("\t")
    if len(cells) != COLUMNS:
        raise _broken(rows, number, f"{COLUMNS} columns between tabs are wanted; {len(cells)} came")
    name, form = cells[0], cells[1]
    glued = "SpaceAfter=No" in cells[9].split("|")
    if "." in name:
        return  # an empty node
    if "-" in name:
        rows.surfaces.append((*_range(rows, name, number), form, glued))
        return
    place = len(rows.words) + 1
    if name != str(place):
        raise _broken(rows, number, f"word {place} should come; {_short(name)} came")
    if not form:
        raise _broken(rows, number, "the word has no form")
    rows.words.append(cells)
    rows.lines.append(number)
    if not rows.surfaces or rows.surfaces[-1][1] < place:
        rows.surfaces.append((place, place, form, glued))


def _range(rows: _Rows, name: str, number: int) -> tuple[int, int]:
    """The first and the last word of a multiword token, which stands right before the first."""
    first, last = (counted(part) for part in name.split("-", 1))
    if first is None or last is None or not first < last:
        raise _broken(rows, number, f"{_short(name)} is no range of words")
    inside = rows.surfaces and rows.surfaces[-1][1] >= first
    if first != len(rows.words) + 1 or inside:
        place = len(rows.words) + 1
        raise _broken(rows, number, f"a range of words from {place} on may come; {name} came")
    return first, last


def _sentence(rows: _Rows) -> Sentence:
    last = rows.surfaces[-1][1]
    if last > len(rows.words):
        raise _broken(rows, rows.lines[-1], f"a multiword token ends at word {last}, beyond them")
    text, spans = _placed(rows)
    if len(text) > LONGEST:
        raise _broken(
            rows, rows.lines[0], f"a sentence of {len(text):,} characters; at most {LONGEST:,} go"
        )
    words = []
    for cells, number, (start, end) in zip(rows.words, rows.lines, spans, strict=True):
        relation = "" if cells[7] == "_" else cells[7]
        pos = "" if cells[3] == "_" else cells[3]
        head = _head(rows, cells[6], number)
        words.append(AnnotatedWord(cells[1], start, end, pos, head, relation))
    return Sentence(text, tuple(words), recognised(text))


def _head(rows: _Rows, cell: str, number: int) -> int | None:
    """The number of the head counted from 0; None for the root and where there is none."""
    if cell in ("_", "0"):
        return None
    head = counted(cell)
    if head is None or head > len(rows.words):
        raise _broken(
            rows, number, f"the head {_short(cell)} is no word of a sentence of {len(rows.words)}"
        )
    return head - 1


def _placed(rows: _Rows) -> tuple[str, list[Span]]:
    """The text, and the characters of each word; words of one multiword token share theirs.

    Where the ``# text`` does not hold the forms in order, the text is put together from the forms.
    """
    spelled = "".join(form + ("" if glued else " ") for _, _, form, glued in rows.surfaces).rstrip()
    for text in (rows.text, spelled):
        spans: list[Span] = []
        place = 0
        for first, last, form, _ in rows.surfaces:
            start = text.find(form, place)
            if start < 0 or text[place:start].strip():
                break
            place = start + len(form)
            spans += [(start, place)] * (last - first + 1)
        else:
            return text, spans
    raise _broken(rows, rows.lines[0], "its forms do not stand in its text one after the other")


def _short(cell: str) -> str:
    return repr(cell if len(cell) <= 40 else f"{cell[:39]}…")


def _broken(rows: _Rows, number: int, what: str) -> InputError:
    return InputError(
        f"{rows.where}, line {number}: {what}.",
        hint="see universaldependencies.org/format.html; columns are separated by tabs.",
    )
