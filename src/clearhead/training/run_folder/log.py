"""The log of a run: one line of JSON for each step and each validation.

A checkpoint knows how long the log was and the checksum of it. So a run that resumes cuts the log
there, torn last line and all. Of the lines behind it only those count that say how long a run of
minutes was to be: steps that were lost are done again with them. A damaged log is kept as far as it
can be read; the weights do not depend on it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clearhead.files.atomic_write import atomic_write
from clearhead.files.json_file import parse_json
from clearhead.files.regular_file import read_regular_file
from clearhead.training.run_folder.progress import LogPosition

LARGEST = 2**31  # bytes; some 25 million steps
EMPTY = LogPosition(0, hashlib.sha256().hexdigest())


class RunLog:
    """The file log.jsonl; what was written so far is known by its length and its checksum."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._digest, self._bytes = hashlib.sha256(), 0

    def append(self, line: Mapping[str, Any]) -> None:
        """Add a line: numbers by name, and of heads numbers by name again."""
        data = (json.dumps(line) + "\n").encode()
        with self.path.open("ab") as file:
            file.write(data)
        self._digest.update(data)
        self._bytes += len(data)

    def position(self) -> LogPosition:
        """How far the log has come; up to there it is on the disk, whatever happens."""
        if self.path.exists():
            with self.path.open("rb+") as file:
                os.fsync(file.fileno())
        return LogPosition(self._bytes, self._digest.hexdigest())

    def lines(self) -> list[dict[str, Any]]:
        """The lines that can be read; whatever else the file holds is left out."""
        return [line for line, _ in _readable(self._read())]

    def cut(self, position: LogPosition, step: int) -> str | None:
        """Cut the log where a checkpoint of ``step`` says; what is wrong with it, if anything is.

        A log that is not what was written is kept as far as it can be read.
        """
        data = self._read()
        kept, wrong = data[: position.bytes], None
        if LogPosition(len(kept), hashlib.sha256(kept).hexdigest()) != position:
            kept = b"".join(raw for line, raw in _readable(data) if line["step"] <= step)
            wrong = (
                f"{self.path} is damaged: it is not what was written up to step {step}. The lines "
                "that can be read are kept; the training itself does not depend on it."
            )
        if kept != data:
            with atomic_write(self.path) as temporary:
                temporary.write_bytes(kept)
        self._digest, self._bytes = hashlib.sha256(kept), len(kept)
        return wrong

    def _read(self) -> bytes:
        if not self.path.exists():
            return b""
        return read_regular_file(self.path, "log", largest=LARGEST, may_be_empty=True)


def _readable(data: bytes) -> list[tuple[dict[str, Any], bytes]]:
    """Every whole line that is an object of numbers with a step; as such, and as its bytes."""
    found = []
    for raw in data.splitlines(keepends=True):
        try:
            line = parse_json(raw)
        except ValueError:
            continue
        if raw.endswith(b"\n") and _is_line(line):
            found.append((line, raw))
    return found


def _is_line(line: object) -> bool:
    if not isinstance(line, dict) or type(line.get("step")) is not int or line["step"] < 0:
        return False
    heads = line.get("heads", {})
    if not isinstance(heads, dict) or not all(isinstance(one, dict) for one in heads.values()):
        return False
    of_heads = [value for one in heads.values() for value in one.values()]
    return all(map(_is_number, [*of_heads, *(v for k, v in line.items() if k != "heads")]))


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < 2**63 and math.isfinite(value)
