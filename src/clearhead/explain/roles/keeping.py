"""Counts kept on the disk, so that an interrupted run goes on where it stopped.

A finished one, too: what was counted need not be counted again to be shown in another way.
"""

from __future__ import annotations

import hashlib
import time
from pathlib import Path
from types import CodeType

from clearhead.checkpoints.aside import written_aside
from clearhead.errors import CheckpointError
from clearhead.explain.roles.corpus import Corpus
from clearhead.explain.roles.counting import Count
from clearhead.explain.roles.tally import Tally

SECONDS = 10.0  # between two savings


class Keeper:
    """A file with the counts so far and how many sentences they hold.

    It is believed only if model, corpus, properties and share of the work are the same.
    """

    def __init__(self, path: Path, count: Count, corpus: Corpus) -> None:
        self.path = path
        self._key = run_key(count, corpus)
        self._saved = time.monotonic()

    def load(self) -> tuple[Tally, int]:
        """The counts to go on from: those of the file, or none."""
        try:
            data = self.path.read_bytes()
        except OSError:
            return Tally(), 0
        try:
            tally, about = Tally.from_bytes(data)
        except CheckpointError:
            return Tally(), 0  # somebody else's file, or half of one: it is written anew
        done = about.get("done")
        if about.get("key") != self._key or not isinstance(done, int):
            return Tally(), 0
        return tally, done

    def save(self, tally: Tally, done: int, *, now: bool = False) -> None:
        """Write the counts, if the last time is long enough ago."""
        if not now and time.monotonic() - self._saved < SECONDS:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with written_aside(self.path) as aside:
                aside.write_bytes(tally.to_bytes({"key": self._key, "done": done}))
        except OSError as error:
            raise CheckpointError(
                f"counts cannot be kept in {self.path}: {error.strerror}."
            ) from None
        self._saved = time.monotonic()

    def remove(self) -> None:
        """Leave nothing to go on from."""
        self.path.unlink(missing_ok=True)


def run_key(count: Count, corpus: Corpus) -> str:
    """A text that is the same exactly for the same work."""
    properties = []
    for one in count.properties:
        function = getattr(one, "targets", None) or getattr(one, "members", None)
        code = getattr(function, "__code__", None)
        properties.append(
            f"{one.name} {one.level} {one.kind} {'' if code is None else _told(code)}"
        )
    parts = [count.reader.print, corpus.name, corpus.key, str(count.layers), str(count.share)]
    return hashlib.blake2b("\n".join([*parts, *properties]).encode(), digest_size=12).hexdigest()


def _told(code: CodeType) -> str:
    """What a function does, as a text that is the same in every process."""
    parts = [code.co_code.hex(), *code.co_names]
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            parts.append(_told(constant))
        elif isinstance(constant, frozenset):
            parts += sorted(map(repr, constant))
        else:
            parts.append(repr(constant))
    return " ".join(parts)
