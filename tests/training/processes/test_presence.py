"""Presence: who stands still is gone, and what it said last is told."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from clearhead.errors import InputError
from clearhead.training.processes import presence as module
from clearhead.training.processes.presence import Presence


class Present(Presence):
    """A presence that is known to the clock of these tests as long as it is there."""

    here: ClassVar[list[Presence]] = []

    def __enter__(self) -> Presence:
        self.here.append(self)
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        self.here.remove(self)
        super().__exit__(*error)


def sleep(seconds: float) -> None:
    """Until everybody who is there has counted on, however busy the machine is."""
    present = [(one, one._beats) for one in Present.here]
    while seconds and any(one in Present.here and one._beats < old + 3 for one, old in present):
        time.sleep(0.005)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[TCPStore]:
    monkeypatch.setattr(module, "BEAT", 0.02)
    monkeypatch.setattr(module, "PATIENCE", timedelta(seconds=300))
    monkeypatch.setattr(module, "time", SimpleNamespace(sleep=sleep, monotonic=lambda: 0.0))
    yield TCPStore("127.0.0.1", 0, is_master=True, timeout=timedelta(seconds=300))


def test_it_lingers_so_that_others_can_see_it(
    store: TCPStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    clock = SimpleNamespace(sleep=slept.append, monotonic=lambda: 0.0)
    monkeypatch.setattr(module, "time", clock)
    with Present(store, 0, 1) as alone:
        alone.who_is_gone()
    assert slept == [module.WATCHED, module.LINGER]


def test_who_stands_still_is_gone(store: TCPStore) -> None:
    ranks = [Present(store, rank, 3) for rank in range(3)]
    for rank in ranks:
        rank.__enter__()
    assert ranks[0].who_is_gone() == "the connection to another process is broken"
    ranks[1].__exit__(None, None, None)
    assert ranks[0].who_is_gone() == "process 1 of this run has ended"
    assert ranks[2].who_is_gone() == "process 1 of this run has ended"
    ranks[0].__exit__(None, None, None)
    ranks[2].__exit__(None, None, None)


def test_last_words_are_told(store: TCPStore) -> None:
    with Present(store, 0, 2) as first:
        with Present(store, 1, 2) as second:
            second.leave(InputError("the texts are gone.", hint="look for them."))
        assert first.who_is_gone() == "process 1 of this run has ended (the texts are gone.)"


def test_both_ask_at_once(store: TCPStore) -> None:
    """Those that are left see each other, and nobody else."""
    said: dict[int, str] = {}
    both = threading.Barrier(2)

    def ask(rank: int) -> None:
        with Present(store, rank, 3) as presence:
            both.wait()
            said[rank] = presence.who_is_gone()
            both.wait()  # for which they linger otherwise

    with Present(store, 2, 3):
        pass
    threads = [threading.Thread(target=ask, args=(rank,)) for rank in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == dict.fromkeys((0, 1), "process 2 of this run has ended")
