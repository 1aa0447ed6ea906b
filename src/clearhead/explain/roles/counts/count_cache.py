"""The count cache: counts in a file, so that an interrupted run continues where it stopped.

A finished run is cached, too: its counts can be shown in another way without counting again.
"""

from __future__ import annotations

import hashlib
import time
from pathlib import Path
from types import CodeType

from clearhead.errors import CheckpointError
from clearhead.explain.roles.corpus.sources import Corpus
from clearhead.explain.roles.counting import Count
from clearhead.explain.roles.counts.effect_cache import effects_path
from clearhead.explain.roles.counts.tally import Tally
from clearhead.explain.roles.counts.tally_file import read_tally, tally_bytes
from clearhead.files.atomic_write import atomic_write
from clearhead.files.regular_file import read_regular_file

SECONDS = 10.0  # between two writes
LARGEST = 2**31  # bytes of the file; a model of 100 billion parameters needs a tenth
MOST = 2**53  # sentences


class CountCache:
    """A file with the counts so far and how many sentences they hold.

    It is used only if model, corpus, properties and share of the work are the same.
    """

    def __init__(self, path: Path, count: Count, corpus: Corpus) -> None:
        self.path = path
        self.key = run_key(count, corpus)
        self._saved = time.monotonic()

    def load(self) -> tuple[Tally, int]:
        """Return the counts and their number of sentences; none if the file is of another run."""
        try:
            tally, about = read_tally(read_regular_file(self.path, "counts", largest=LARGEST))
        except CheckpointError:
            return Tally(), 0  # none, another file, or a damaged one: it is written again
        done = about.get("done")
        if about.get("key") != self.key or type(done) is not int or not 0 <= done < MOST:
            return Tally(), 0
        return tally, done

    def save(self, tally: Tally, done: int, *, now: bool = False) -> None:
        """Write the counts if the last write was more than ``SECONDS`` ago, or ``now``."""
        if not now and time.monotonic() - self._saved < SECONDS:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(self.path) as temporary:
                temporary.write_bytes(tally_bytes(tally, {"key": self.key, "done": done}))
        except OSError as error:
            raise CheckpointError(
                f"counts cannot be kept in {self.path}: {error.strerror}."
            ) from None
        self._saved = time.monotonic()

    def remove(self) -> None:
        """Delete the file, and that of effects beside it."""
        for path in (self.path, effects_path(self.path)):
            path.unlink(missing_ok=True)


def run_key(count: Count, corpus: Corpus) -> str:
    """Return a hash that is the same exactly for the same model, corpus, properties and share."""
    properties = []
    for one in count.properties:
        function = getattr(one, "targets", None) or getattr(one, "members", None)
        code = getattr(function, "__code__", None)
        properties.append(
            f"{one.name} {one.level} {one.kind} {'' if code is None else _code_text(code)}"
        )
    parts = [count.reader.fingerprint, corpus.name, corpus.key, str(count.layers), str(count.share)]
    return hashlib.blake2b("\n".join([*parts, *properties]).encode(), digest_size=12).hexdigest()


def _code_text(code: CodeType) -> str:
    """The code of a function as a text that is the same in every process."""
    parts = [code.co_code.hex(), *code.co_names]
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            parts.append(_code_text(constant))
        elif isinstance(constant, frozenset):
            parts += sorted(map(repr, constant))
        else:
            parts.append(repr(constant))
    return " ".join(parts)
