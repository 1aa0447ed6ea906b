"""JSON files: read strictly, because anybody may have written them; written atomically."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from clearhead.errors import CheckpointError
from clearhead.files.regular_file import read_regular_file
from clearhead.files.text_file import write_text

LARGEST_JSON = 4 * 2**20  # bytes; empty lists take twenty times their size in Python's memory
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")


def parse_json(data: bytes | str) -> Any:
    """Parse JSON in UTF-8.

    Raises:
        ValueError: for whatever is wrong: bad UTF-8, bad JSON, deep nesting, a name that an object
            lists twice, half a character (a lone surrogate, which no file can hold again).

    >>> parse_json('{"layers": 2, "layers": 3}')
    Traceback (most recent call last):
    ValueError: it lists 'layers' twice
    """
    try:
        text = data.decode("utf-8") if isinstance(data, bytes) else data
        value = json.loads(text, object_pairs_hook=_object)
        if _SURROGATE.search(text):  # nearly always the two halves of an emoji
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        return value
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeEncodeError:
        raise ValueError("it holds half a character (a lone surrogate)") from None


def read_json(path: Path, *, wanted: str = "JSON", largest: int = LARGEST_JSON) -> dict[str, Any]:
    """Return the JSON object in a file of at most ``largest`` bytes.

    ``wanted`` is the name of this kind of file in error texts.

    Raises:
        CheckpointError: the path is no ordinary file, too large, or does not hold a JSON object.
    """
    value = _read(path, wanted, largest)
    if not isinstance(value, dict):
        raise CheckpointError(
            f"{path} should hold a JSON object, and holds a {type(value).__name__}."
        )
    return value


def read_json_array(path: Path) -> list[Any]:
    """Return the JSON array in a file.

    Raises:
        CheckpointError: the path is no ordinary file, too large, or does not hold a JSON array.
    """
    value = _read(path, "JSON", LARGEST_JSON)
    if not isinstance(value, list):
        raise CheckpointError(
            f"{path} should hold a JSON array, and holds a {type(value).__name__}."
        )
    return value


def write_json(path: Path, value: Any) -> None:
    """Write ``value`` as JSON, atomically, and the folders above it if they are missing.

    Raises:
        OSError: the file cannot be written; an old file is still there then.
    """
    write_text(path, json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def _read(path: Path, wanted: str, largest: int) -> Any:
    try:
        return parse_json(read_regular_file(path, wanted, largest=largest))
    except ValueError as error:
        raise CheckpointError(
            f"{path} is not valid JSON: {error}.",
            hint="the file is probably cut off or a download page; fetch it again.",
        ) from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        name, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"it lists {name!r} twice")
    return made
