"""One's own numbers from a CSV file: what ``clearhead steps --numbers FILE.csv`` reads.

Each line begins with what it is, then a word, then numbers::

    query,gets,2,0,-1
    key,Action,1,0,1
    key,gets,1,0,-1
    value,Action,5,1
    value,gets,0,2
    scale,,0.5

Without values the keys are the values and nothing is scaled, as in ``ch.steps(keys, query)``; with
values the scale is 1/√(numbers of a key), unless there is a line ``scale``. A line ``causal`` hides
later keys. Empty lines, lines that begin with #, and a heading are skipped. Spreadsheets also write
semicolons (then with decimal commas) or tabs between the cells; both are read.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from clearhead.attention.steps import attention_steps
from clearhead.errors import InputError
from clearhead.explain.step_table import StepTable, step_table
from clearhead.files.text_file import read_text

KINDS = ("query", "key", "value", "scale", "causal")
HEADINGS = ("kind", "what", "role", "row")
LARGEST = 1_000_000  # bytes
MOST_CELLS = 4_000_000  # weights · value width


@dataclass
class OwnNumbers:
    """The lines of a file by their kind."""

    words: dict[str, list[str]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    rows: dict[str, list[list[float]]] = field(default_factory=lambda: {kind: [] for kind in KINDS})

    def matrix(self, kind: str) -> Tensor:
        """The vectors of one kind."""
        return torch.tensor(self.rows[kind], dtype=torch.float64)


def tables_of_file(path: Path) -> list[StepTable]:
    """A step table for each query of a file.

    Raises:
        InputError: the file cannot be read, or a line is not as described; it is named.
    """
    numbers = _read(path)
    key = numbers.matrix("key")
    value = numbers.matrix("value") if numbers.rows["value"] else key
    query = numbers.matrix("query")
    scale = numbers.rows["scale"][0][0] if numbers.rows["scale"] else None
    if scale is None and not numbers.rows["value"]:
        scale = 1.0
    if query.shape[0] * value.numel() > MOST_CELLS:
        raise InputError(
            f"{path} has {query.shape[0]} queries and {key.shape[0]} keys: too many for tables."
        )
    steps = attention_steps(query, key, value, scale=scale, causal=bool(numbers.words["causal"]))
    words = numbers.words["key"]
    return [
        step_table(
            words, query, key, steps, row=row, query_word=word, title=f"where “{word}” looks"
        )
        for row, word in enumerate(numbers.words["query"])
    ]


def _read(path: Path) -> OwnNumbers:
    numbers = OwnNumbers()
    text = read_text(path, largest=LARGEST, error_kind=InputError)
    for number, cells in enumerate(_cells(text.removeprefix("\ufeff"), path), start=1):
        kind = cells[0].strip().lower() if cells else ""
        if not any(cell.strip() for cell in cells) or kind.startswith("#"):
            continue
        if number == 1 and kind in HEADINGS:
            continue
        _add(numbers, kind, cells, f"{path}, line {number}")
    _check(numbers, path)
    return numbers


def _cells(text: str, path: Path) -> list[list[str]]:
    """The cells of each line; what stands between them is told by the first word of any line."""
    lines = [line.strip().lower() for line in text.splitlines()]
    found = (sign for sign in ";\t" for line in lines if line.startswith(_starts(sign)))
    between = next(found, ",")
    try:
        rows = list(csv.reader(text.splitlines(), strict=True, delimiter=between))
    except csv.Error as error:
        raise InputError(f"{path} is no CSV file: {error}.") from None
    if between != ";":
        return rows
    return [[*cells[:2], *(cell.replace(",", ".") for cell in cells[2:])] for cells in rows]


def _starts(between: str) -> tuple[str, ...]:
    return tuple(kind + between for kind in KINDS)


def _add(numbers: OwnNumbers, kind: str, cells: list[str], where: str) -> None:
    if kind not in KINDS:
        raise InputError(
            f"{where}: a line begins with {', '.join(KINDS)}; got {cells[0].strip()[:40]!r}.",
            hint="for example: key,Action,1,0,1",
        )
    if kind == "scale" and len(cells) == 2:
        cells = [kind, "", cells[1]]
    name = cells[1].strip() if len(cells) > 1 else ""
    row = [_number(cell, where) for cell in cells[2:] if cell.strip()]
    if kind != "causal" and not row:
        raise InputError(f"{where}: numbers are wanted behind the word; got none.")
    same = numbers.rows[kind]
    if same and len(same[0]) != len(row):
        raise InputError(
            f"{where}: this {kind} has {len(row)} numbers, and the first has {len(same[0])}."
        )
    if kind == "scale" and (same or len(row) != 1):
        raise InputError(f"{where}: scale is one number, once.")
    numbers.words[kind].append(name or f"{kind} {len(same)}")
    same.append(row)


def _number(cell: str, where: str) -> float:
    plain = cell.strip().replace("−", "-")
    try:
        found = float(plain)
    except ValueError:
        found = math.nan
    if not math.isfinite(found) or "_" in plain:
        raise InputError(f"{where}: a finite number is wanted; got {cell.strip()[:40]!r}.")
    return found


def _check(numbers: OwnNumbers, path: Path) -> None:
    for kind in ("query", "key"):
        if not numbers.rows[kind]:
            raise InputError(f"{path} has no line that begins with {kind}; at least one is wanted.")
    _check_words(numbers, path)
    query, key = numbers.rows["query"][0], numbers.rows["key"][0]
    if len(query) != len(key):
        raise InputError(
            f"{path}: queries and keys are multiplied and need as many numbers; got {len(query)} "
            f"and {len(key)}."
        )
    values, keys = len(numbers.rows["value"]), len(numbers.rows["key"])
    if values and values != keys:
        raise InputError(f"{path}: each key has one value; got {keys} keys and {values} values.")


def _check_words(numbers: OwnNumbers, path: Path) -> None:
    """Refuse a file whose words are all numbers: the words were most likely left out."""
    words = [word for kind in ("query", "key", "value") for word in numbers.words[kind]]
    if all(map(_is_number, words)):
        raise InputError(
            f"{path}: behind query, key and value stands a word, and then numbers; the words here "
            f"are numbers: {', '.join(words[:3])}.",
            hint="without words, leave their place empty: key,,1,0,1",
        )


def _is_number(word: str) -> bool:
    try:
        float(word.replace("−", "-").replace(",", "."))
    except ValueError:
        return False
    return True
