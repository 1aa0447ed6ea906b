"""Presence: which process of a run has ended, for those that wait for it in vain.

A broken connection says that somebody is gone, not who. So each process counts upwards in the store
that all of them share, in a thread of its own. Whoever loses a connection looks which counts stand
still. A process that ends with an error leaves its last words there first.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from datetime import timedelta
from types import TracebackType
from typing import Any

from clearhead.errors import ClearheadError

BEAT = 0.25  # seconds between two counts
WATCHED = 1.5  # seconds in which a count that stands still means that its process is gone
LINGER = 3.0  # seconds that the others stay, so that everybody can see them
PATIENCE = timedelta(seconds=5)  # of a question to the store
LONGEST = 500  # characters of last words


class Presence:
    """The count of this process, and its view of the others."""

    def __init__(self, store: Any, rank: int, count: int) -> None:
        self.rank, self.count = rank, count
        self._store = store.clone()  # a connection of its own: the other one may be waiting
        self._store.set_timeout(PATIENCE)
        self._beats, self._ended = 0, threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> Presence:
        self._store.set(_count(self.rank), "0")
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._ended.set()
        self._thread.join(LINGER)

    def leave(self, error: Exception) -> None:
        """Tell the others why this process ends."""
        words = error.message if isinstance(error, ClearheadError) else repr(error)
        with suppress(RuntimeError):
            self._store.set(_words(self.rank), words[:LONGEST])

    def who_is_gone(self) -> str:
        """The processes whose counts stand still, with their last words; it takes seconds."""
        began = time.monotonic()
        try:
            first = self._counts()
            time.sleep(WATCHED)
            second = self._counts()
            gone = [rank for rank in first if first[rank] == second[rank] and rank != self.rank]
            said = [self._said(rank) for rank in gone]
        except RuntimeError:  # the store is part of the first process
            return "process 0 of this run has ended"
        time.sleep(max(0.0, LINGER - (time.monotonic() - began)))
        return " and ".join(said) if said else "the connection to another process is broken"

    def _said(self, rank: int) -> str:
        ended = f"process {rank} of this run has ended"
        if not self._store.check([_words(rank)]):
            return ended
        return f"{ended} ({self._store.get(_words(rank)).decode(errors='replace')})"

    def _counts(self) -> dict[int, bytes]:
        present = (rank for rank in range(self.count) if self._store.check([_count(rank)]))
        return {rank: self._store.get(_count(rank)) for rank in present}

    def _beat(self) -> None:
        while not self._ended.wait(BEAT):
            self._beats += 1
            with suppress(RuntimeError):
                self._store.set(_count(self.rank), str(self._beats))


def _count(rank: int) -> str:
    return f"clearhead/count/{rank}"


def _words(rank: int) -> str:
    return f"clearhead/words/{rank}"
