"""The lock: one process at a time, named to the others, gone with its process."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from clearhead.training.run_folder.lock import HOLDER, InUseError, RunLock

FORKS = multiprocessing.get_context("fork")


def hold(inside: Path, ready: Any) -> None:
    with RunLock(inside).held():
        ready.set()
        time.sleep(60)


@pytest.mark.kill
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_another_process_has_it_until_it_is_killed(tmp_path: Path) -> None:
    inside, ready = tmp_path / "run" / "training", FORKS.Event()
    process = FORKS.Process(target=hold, args=(inside, ready))
    process.start()
    assert ready.wait(30)
    for _ in range(3):
        with (
            pytest.raises(
                InUseError, match=rf"process {process.pid} on .* is training in"
            ) as error,
            RunLock(inside).held(),
        ):
            pass
    assert error.value.hint is not None and "wait until it is done" in error.value.hint
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    with RunLock(inside).held():  # a lock that was left by a killed process does not block
        assert str(os.getpid()) in (inside / HOLDER).read_text()


def test_the_same_lock_may_be_entered_again(tmp_path: Path) -> None:
    lock = RunLock(tmp_path)
    with lock.held():
        with lock.held():
            pass
        with (
            pytest.raises(InUseError, match="this process is training in") as error,
            RunLock(tmp_path).held(),
        ):
            pass
    assert error.value.hint is not None and "events.close()" in error.value.hint
    with RunLock(tmp_path).held():
        pass


def test_a_holder_that_says_nothing(tmp_path: Path) -> None:
    with RunLock(tmp_path).held():
        for words in ("", "[]", '{"pid": "a"}', '{"pid": 1, "host": 2}'):
            (tmp_path / HOLDER).write_text(words)
            wanted = re.escape(f"another process is training in {tmp_path.parent}.")
            with pytest.raises(InUseError, match=wanted), RunLock(tmp_path).held():
                pass
