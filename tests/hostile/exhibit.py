"""Exhibits: failures made small and kept as files, which the tests try again for ever."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

from tests.hostile.mutant import Files, Format, Mutant, Part, mutant
from tests.hostile.outcome import Outcome

FOLDER = Path(__file__).parent / "exhibits"


def smallest(found: Mutant, still_fails: Callable[[Files], bool]) -> Files:
    """The files with as few changes as still fail."""
    changes = list(found.changes)
    for change in found.changes if len(changes) > 1 else ():
        fewer = [other for other in changes if other is not change]
        if fewer and still_fails(replace(found, changes=tuple(fewer)).made()):
            changes = fewer
    return replace(found, changes=tuple(changes)).made()


def keep(format: Format, seed: int, outcome: Outcome, files: Files, folder: Path = FOLDER) -> Path:
    """Write an exhibit; return its path."""
    about = {
        "format": format.name, "seed": seed, "number": outcome.number, "outcome": outcome.what,
        "error": outcome.error, "place": outcome.place,
        "files": {path: _written(part) for path, part in files.items()},
    }  # fmt: skip
    folder.mkdir(exist_ok=True)
    path = next(path for path in _names(format, outcome, folder) if not path.exists())
    path.write_text(json.dumps(about, indent=1, ensure_ascii=True) + "\n")
    return path


def read(path: Path) -> tuple[str, Files]:
    """The format and the files of an exhibit."""
    about = json.loads(path.read_text())
    return about["format"], {name: _read(part) for name, part in about["files"].items()}


def _names(format: Format, outcome: Outcome, folder: Path) -> Iterator[Path]:
    words = f"{format.name} {outcome.error.partition(':')[0]} {outcome.place.partition(':')[0]}"
    stem = re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")
    return (folder / f"{stem}{'' if n == 0 else f'-{n + 1}'}.json" for n in count())


def _written(part: Part) -> dict[str, str]:
    if isinstance(part, str):
        return {"special": part}
    try:
        text = part.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if text and text.isprintable() and len(text) < 2000:
        return {"text": text}
    return {"deflated": base64.b64encode(zlib.compress(part, 9)).decode()}


def _read(part: dict[str, str]) -> Part:
    if "special" in part:
        return part["special"]
    if "text" in part:
        return part["text"].encode()
    return zlib.decompress(base64.b64decode(part["deflated"]))


def mutant_files(format: Format, seed: int, number: int) -> Files:
    """The files of a mutant."""
    return mutant(format, seed, number).made()
