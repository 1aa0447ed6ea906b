"""JSON Lines: one document in each line, as a string or as a field of an object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from clearhead.errors import InputError
from clearhead.files.json_file import parse_json

FIELD = "text"  # unless another one is named
SUFFIXES = (".jsonl", ".ndjson")
LONGEST = 1 << 28  # characters of one line
SHOWN = 8  # names of fields that an error repeats


def lines(blocks: Iterable[str], where: str = "the file") -> Iterator[str]:
    """The lines of a text that comes in blocks, without their ends."""
    held: list[str] = []
    size = 0
    for block in blocks:
        *whole, rest = block.split("\n")
        for line in whole:
            yield "".join([*held, line])
            held, size = [], 0
        held.append(rest)
        size += len(rest)
        if size > LONGEST:
            raise InputError(f"{where} has a line of more than {LONGEST:,} characters.")
    if size:
        yield "".join(held)


def documents(blocks: Iterable[str], path: Path | str, field: str | None) -> Iterator[str]:
    """The document of each line; empty lines are left out.

    Raises:
        InputError: a line is no JSON, or has no text in the field; it names the line.
    """
    name = FIELD if field is None else field
    for number, line in enumerate(lines(blocks, str(path)), start=1):
        if line.strip():
            yield _text(_parsed(line, path, number), name, f"{path}, line {number}")


def _parsed(line: str, path: Path | str, number: int) -> Any:
    try:
        return parse_json(line)
    except ValueError as error:
        raise InputError(
            f"{path}, line {number} is no JSON: {error}.",
            hint="a file named .jsonl has one JSON value in each line; rename a plain text.",
        ) from None


def _text(value: Any, name: str, where: str) -> str:
    if isinstance(value, str):
        return value.replace("\r\n", "\n")
    if not isinstance(value, dict):
        raise InputError(f"{where}: a text or an object with a field {name!r} was wanted.")
    if name not in value:
        found = ", ".join(map(repr, list(value)[:SHOWN])) or "none"
        raise InputError(
            f"{where} has no field {name!r}; its fields: {found}.",
            hint="--field NAME (field=) says which one holds the text.",
        )
    text = value[name]
    if text is None:
        return ""
    if not isinstance(text, str):
        raise InputError(f"{where}: the field {name!r} should be a text.")
    return text.replace("\r\n", "\n")
