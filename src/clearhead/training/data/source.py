"""The texts of a run, as a Python program gives them: paths, or the texts themselves.

=============================  ===================================================
``None``                       Python's own reference text
``"book.txt"``, ``Path(…)``    one file or folder
``"-"``                        standard input
``[Path(…), Path(…)]``         several files and folders
``["One text.", "Another."]``  the texts themselves, one document each
``[("source", "target"), …]``  with ``pairs=True``: the pairs themselves
``[[{"role": …}, …], …]``      with ``chats=True``: the chats themselves
=============================  ===================================================

So a string alone is a path, and a string in a list is a text. A list of strings in which one names
a file that exists could mean either, and is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from clearhead.errors import CheckpointError, InputError
from clearhead.files.json_file import parse_json
from clearhead.training.data.corpus import read_text
from clearhead.training.plan import STANDARD_INPUT

Chat: TypeAlias = Sequence[Mapping[str, Any]]  # messages: who says what
Given: TypeAlias = (
    str | Path | Sequence[str] | Sequence[Path] | Sequence[tuple[str, str]] | Sequence[Chat]
)
Content: TypeAlias = list[str] | list[tuple[str, str]] | list[Any]  # documents, pairs, chats

LONGEST_PATH = 4096
SHOWN = 40  # characters of a text that an error repeats
AS_FILES = "for files, give Path objects: [Path('book.txt'), …]."
AS_PAIRS = (
    "pairs are [('source', 'target'), …], two files [Path('source.txt'), Path('target.txt')], or "
    "one file with a tab in each line."
)


@dataclass(frozen=True)
class Source:
    """Absolute paths; or ``content``: the texts or pairs themselves. Neither: reference text."""

    paths: tuple[str, ...] = ()
    content: Content | None = None


def source_of(given: object, *, pairs: bool) -> Source:
    """Tell paths, texts and pairs apart (:data:`Given`); refuse everything else."""
    if given is None:
        return Source()
    if isinstance(given, str | Path):
        return Source((_existing(given),))
    if not isinstance(given, Sequence) or isinstance(given, bytes):
        raise InputError(
            f"texts are a path or a list; got a {type(given).__name__}.",
            hint="list(…) makes a list of anything that can be iterated over.",
        )
    items: list[Any] = list(given)
    if not items:
        raise InputError("there is nothing to learn from: the list of texts is empty.")
    if all(isinstance(item, Path) for item in items):
        return Source(tuple(_absolute(item) for item in items))
    return Source(content=_pairs(items) if pairs else _texts(items))


def _absolute(path: Path) -> str:
    """A path that is found from everywhere; ``-`` stays what it is."""
    return STANDARD_INPUT if str(path) == STANDARD_INPUT else str(path.absolute())


def _existing(given: str | Path) -> str:
    if str(given) == STANDARD_INPUT:
        return STANDARD_INPUT
    if isinstance(given, Path) or names_a_file(given):
        return str(Path(given).absolute())
    raise InputError(
        f"there is no file or folder {_short(given)}.",
        hint="a string alone is a path; a text itself goes into a list: [text].",
    )


def _texts(items: list[Any]) -> list[str]:
    for item in items:
        if isinstance(item, tuple):
            raise InputError("the texts are tuples.", hint="for pairs, say pairs=True.")
        _check_text(item, AS_FILES)
        if names_a_file(item):
            raise InputError(
                f"{_short(item)} may be a text or the file of that name; a string in a list is a "
                "text.",
                hint=AS_FILES,
            )
    kept = [text for text in items if text.strip()]
    if not kept:
        raise InputError("there is nothing to learn from: every text is empty.")
    return kept


def _pairs(items: list[Any]) -> list[tuple[str, str]]:
    for item in items:
        if not isinstance(item, tuple | list) or len(item) != 2:
            raise InputError(f"a pair is (source, target); got {_short(item)}.", hint=AS_PAIRS)
        for text in item:
            _check_text(text, AS_PAIRS)
    kept = [(source.strip(), target.strip()) for source, target in items]
    kept = [pair for pair in kept if all(pair)]
    if not kept:
        raise InputError("there is nothing to learn from: every pair has an empty side.")
    return kept


def _check_text(text: object, hint: str) -> None:
    if not isinstance(text, str):
        raise InputError(f"a text is a string; got {_short(text)}.", hint=hint)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{_short(text)} is not valid Unicode: {error.reason}.") from None


def names_a_file(text: str) -> bool:
    """True if there is a file or folder of this name."""
    if not text or len(text) > LONGEST_PATH or "\n" in text:
        return False
    try:
        return Path(text).exists()
    except (OSError, ValueError):
        return False


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= SHOWN else shown[: SHOWN - 1] + "…"


def to_lines(content: Content) -> str:
    """Texts or pairs as JSON Lines, for the run's folder."""
    return "".join(json.dumps(item) + "\n" for item in content)


def from_lines(path: Path, *, pairs: bool) -> Content:
    """The texts or pairs that :func:`to_lines` wrote.

    Raises:
        CheckpointError: the file holds something else.
    """
    items: list[Any] = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        try:
            item = parse_json(line) if line else None
        except ValueError as error:
            raise CheckpointError(f"{path} is damaged at line {number}: {error}.") from None
        if line:
            items.append(tuple(item) if pairs and isinstance(item, list) else item)
    wanted = _is_pair if pairs else _is_text
    if not items or not all(map(wanted, items)):
        what = "pairs" if pairs else "texts"
        raise CheckpointError(f"{path} is damaged: it should hold {what}, one in each line.")
    return items


def _is_text(item: object) -> bool:
    return isinstance(item, str)


def _is_pair(item: object) -> bool:
    return isinstance(item, tuple) and len(item) == 2 and all(map(_is_text, item))
