"""Presence: who stands still is gone, and what it said last is told."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from clearhead.errors import InputError
from clearhead.training.processes import presence as module
from clearhead.training.processes.presence import Presence


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[TCPStore]:
    for name, seconds in (("BEAT", 0.02), ("WATCHED", 0.2), ("LINGER", 0.3)):
        monkeypatch.setattr(module, name, seconds)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    yield TCPStore("127.0.0.1", port, is_master=True, timeout=timedelta(seconds=5))


def test_who_stands_still_is_gone(store: TCPStore) -> None:
    ranks = [Presence(store, rank, 3) for rank in range(3)]
    for rank in ranks:
        rank.__enter__()
    assert ranks[0].who_is_gone() == "the connection to another process is broken"
    ranks[1].__exit__(None, None, None)
    assert ranks[0].who_is_gone() == "process 1 of this run has ended"
    assert ranks[2].who_is_gone() == "process 1 of this run has ended"
    ranks[0].__exit__(None, None, None)
    ranks[2].__exit__(None, None, None)


def test_last_words_are_told(store: TCPStore) -> None:
    with Presence(store, 0, 2) as first:
        with Presence(store, 1, 2) as second:
            second.leave(InputError("the texts are gone.", hint="look for them."))
        assert first.who_is_gone() == "process 1 of this run has ended (the texts are gone.)"


def test_both_ask_at_once(store: TCPStore) -> None:
    """Those that are left see each other, and nobody else."""
    said: dict[int, str] = {}

    def ask(rank: int) -> None:
        with Presence(store, rank, 3) as presence:
            said[rank] = presence.who_is_gone()

    with Presence(store, 2, 3):
        pass
    threads = [threading.Thread(target=ask, args=(rank,)) for rank in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == dict.fromkeys((0, 1), "process 2 of this run has ended")
