"""Small JSON files: read with suspicion, written aside and renamed."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from clearhead.errors import CheckpointError

LARGEST_FILE = 256 * 2**20  # the largest tokenizers in use are below 50 MB


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file, or a ``CheckpointError`` that says what is wrong with it."""
    content = _read_bytes(path)
    try:
        value = json.loads(content.decode("utf-8"))
    except RecursionError:
        raise CheckpointError(f"{path.name} is nested too deeply to be honest: {path}") from None
    except ValueError as error:  # both bad UTF-8 and bad JSON
        raise CheckpointError(
            f"{path.name} is not valid JSON ({error}): {path}",
            hint="the file is probably cut off or a download page; fetch it again.",
        ) from None
    if not isinstance(value, dict):
        raise CheckpointError(
            f"{path.name} should hold a JSON object, and holds a {type(value).__name__}: {path}"
        )
    return value


def read_text(path: Path) -> str:
    """A file's text, or a ``CheckpointError`` when it is too large or no UTF-8."""
    try:
        return _read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{path.name} is not UTF-8 text ({error}): {path}") from None


def write_text(path: Path, content: str) -> None:
    """Write a file so that it is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    aside = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(content)
        aside.chmod(0o644)  # mkstemp keeps files to their owner
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write a JSON object so that it is there whole or not at all."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def _read_bytes(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        if size > LARGEST_FILE:
            raise CheckpointError(
                f"{path.name} has {size:,} bytes; no tokenizer needs more than "
                f"{LARGEST_FILE:,}: {path}"
            )
        return path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path.name} cannot be read ({error.strerror}): {path}") from None
