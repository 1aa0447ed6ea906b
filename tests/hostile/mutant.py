"""One mutant: the files of a specimen after one to three changes, all from its number and the seed.

Even numbers walk over every file of every specimen: everything that can lie at a path instead of a
file, then each place of its content with each bad value, in an order that visits all files early.
Odd numbers, and even ones after the end of the walk, are random.
"""

from __future__ import annotations

import bisect
import shutil
import stat
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import TypeAlias

from tests.hostile.kinds import kind_of
from tests.hostile.kinds.raw import RAW
from tests.hostile.kinds.special import SPECIAL

Part: TypeAlias = bytes | str  # the content of a file, or what lies there instead (SPECIAL)
Files: TypeAlias = dict[str, Part]
Change: TypeAlias = Callable[[Files], Files]
STRIDE = 7_368_787


@dataclass(frozen=True)
class Format:
    """A format: good files, and a use of what was read from them in a folder."""

    name: str
    make: Callable[[], list[dict[str, bytes]]]
    use: Callable[[Path, Random], object]
    weight: float = 1.0  # its share of a run of all formats
    seconds: float = 5.0
    megabytes: float = 50.0
    kept: tuple[str, ...] = ()  # files that stay as they are
    repaired: Callable[[Files], Files] | None = None  # with checksums that fit, as a forger would

    @cached_property
    def specimens(self) -> list[dict[str, bytes]]:
        """The good files, made once."""
        return self.make()

    @cached_property
    def walk(self) -> list[tuple[int, str, int]]:
        """The files that are walked over: the specimen's number, path, number of changes."""
        return [
            (number, path, len(SPECIAL) + kind_of(path).steps(data) + RAW.steps(data))
            for number, files in enumerate(self.specimens)
            for path, data in files.items()
            if path not in self.kept
        ]

    @cached_property
    def ends(self) -> list[int]:
        """The number after the last change of each of them."""
        return list(accumulate(steps for _, _, steps in self.walk))

    @property
    def steps(self) -> int:
        """How many mutants walk over the specimens."""
        return self.ends[-1]

    def step_of(self, number: int) -> int | None:
        """The step of the walk that a mutant is; None if it is a random one."""
        if number % 2 or number // 2 >= self.steps:
            return None
        return number // 2 * STRIDE % self.steps  # a prime visits each step once


@dataclass(frozen=True)
class Mutant:
    """The files of a specimen and the changes that make a mutant of them."""

    files: dict[str, bytes]
    changes: tuple[Change, ...]
    repaired: Callable[[Files], Files] | None = None

    def made(self) -> Files:
        """The files after all changes."""
        files: Files = dict(self.files)
        for change in self.changes:
            files = change(files)
        return files if self.repaired is None else self.repaired(files)


def mutant(format: Format, seed: int, number: int) -> Mutant:
    """The mutant of a number: the same whenever it is made. Every fourth keeps a wrong checksum."""
    repaired = format.repaired if number % 8 > 1 else None
    walked = format.step_of(number)
    if walked is not None:
        place = bisect.bisect_right(format.ends, walked)
        specimen, path, steps = format.walk[place]
        step = walked - format.ends[place] + steps
        changes: tuple[Change, ...] = (lambda files: _stepped(files, path, step),)
        return Mutant(format.specimens[specimen], changes, repaired)
    random = Random(f"{seed} {format.name} {number}")
    specimen = random.randrange(len(format.specimens))
    files = format.specimens[specimen]
    paths = [path for path in files if path not in format.kept]
    many = random.choice((1, 1, 1, 2, 3))
    changes = tuple(
        _random_change(random.choice(paths), random.getrandbits(60)) for _ in range(many)
    )
    return Mutant(files, changes, repaired)


def _stepped(files: Files, path: str, step: int) -> Files:
    data = files[path]
    assert isinstance(data, bytes)
    if step < len(SPECIAL):
        return files | {path: list(SPECIAL)[step]}
    step -= len(SPECIAL)
    kind = kind_of(path)
    if step < kind.steps(data):
        return files | {path: kind.step(data, step)}
    return files | {path: RAW.step(data, step - kind.steps(data))}


def _random_change(path: str, seed: int) -> Change:
    def change(files: Files) -> Files:
        data, random = files[path], Random(seed)
        if isinstance(data, str):
            return files
        way = random.random()
        if way < 0.02:
            return files | {path: random.choice(list(SPECIAL))}
        if way < 0.25:
            return files | {path: RAW.changed(data, random)}
        try:
            return files | {path: kind_of(path).changed(data, random)}
        except Exception:  # an earlier change left no structure to change
            return files | {path: RAW.changed(data, random)}

    return change


def write(files: Files, folder: Path) -> int:
    """Put the files into an empty folder; return how many bytes they have together."""
    for name, part in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(part, bytes):
            path.write_bytes(part)
        else:
            SPECIAL[part](path)
    return sum(len(part) for part in files.values() if isinstance(part, bytes))


def clear(folder: Path) -> None:
    """Empty the folder."""
    for path in folder.iterdir():
        if stat.S_ISDIR(path.lstat().st_mode):
            shutil.rmtree(path)
        else:
            path.unlink()
