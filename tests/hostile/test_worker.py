"""The oracle finds what it looks for: otherwise a million mutants would prove nothing."""

from __future__ import annotations

import ctypes
import mmap
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from clearhead.errors import CheckpointError
from tests.hostile import worker
from tests.hostile.mutant import Format
from tests.hostile.outcome import Outcome
from tests.hostile.worker import of_files_in_process, tried


def format_of(use: Callable[[Path], object], **limits: float) -> Format:
    def specimens() -> list[dict[str, bytes]]:
        return [{"a.json": b'{"a": 1}'}]

    return Format("test", specimens, lambda folder, _: use(folder), **limits)  # type: ignore[arg-type]


def outcome_of(use: Callable[[Path], object], **limits: float) -> Outcome:
    return of_files_in_process(format_of(use, **limits), {"a.json": b"{}"})


def our_error(_: Path) -> None:
    raise CheckpointError("no")


def panic(_: Path) -> None:
    raise type("PanicException", (BaseException,), {})("Rust")


def unspeakable(_: Path) -> None:
    class OddError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    raise OddError


@pytest.mark.parametrize(
    ("use", "what", "error"),
    [
        (lambda folder: folder, "loaded", ""),
        (our_error, "refused", "CheckpointError: no"),
        (lambda _: dict[str, int]()["x"], "raw error", "KeyError: 'x'"),
        (panic, "raw error", "PanicException: Rust"),
        (unspeakable, "raw error", "OddError: its text fails with RuntimeError"),
        (lambda _: os.abort(), "crash", "the process died: SIGABRT"),
        (lambda _: ctypes.string_at(8), "crash", "the process died: SIGSEGV"),
        (lambda _: os._exit(3), "crash", "the process died: exit"),
    ],
)
def test_what_comes_of_a_mutant(use: Callable[[Path], object], what: str, error: str) -> None:
    outcome = outcome_of(use)
    assert (outcome.what, outcome.error) == (what, error)
    assert outcome.failed == (what not in ("loaded", "refused"))


def test_time_is_limited_in_python_in_c_and_while_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker, "WAIT", 0.5)

    def forever(_: Path) -> None:
        while True:
            pass

    for use in (forever, lambda _: 7**10**9, lambda _: time.sleep(30)):
        assert outcome_of(use, seconds=0.2).what == "time"


def test_a_pipe_that_is_opened_waits_and_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "WAIT", 0.5)
    format = format_of(lambda folder: (folder / "a.json").read_bytes(), seconds=0.1)
    assert of_files_in_process(format, {"a.json": "fifo"}).what == "time"


def fill(size: int) -> None:
    """Touch fresh pages: the heap of a process that has run much may have enough already."""
    with mmap.mmap(-1, size) as pages:
        for place in range(0, size, mmap.PAGESIZE):
            pages[place] = 1


def test_memory_is_measured_even_if_it_is_free_again() -> None:
    outcome = outcome_of(lambda _: fill(80_000_000))
    assert outcome.what == "memory" and outcome.megabytes > 75
    assert outcome_of(lambda _: fill(30_000_000)).what == "loaded"
    assert outcome_of(lambda _: bytearray(2**40)).error.startswith("MemoryError")


def test_every_mutant_is_tried_although_processes_die() -> None:
    def dies_sometimes(folder: Path) -> None:
        size = (folder / "a.json").stat().st_size
        if size % 3 == 0:
            os.abort()

    format = format_of(dies_sometimes)
    numbers = [n for n in range(2 * format.steps) if n % 11 == 0]
    outcomes = list(tried(format, 0, numbers))
    assert [outcome.number for outcome in outcomes] == numbers
    assert {"loaded", "crash"} <= {outcome.what for outcome in outcomes}
