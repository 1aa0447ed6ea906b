import threading
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from clearhead.errors import InputError
from clearhead.studio import worker as module
from clearhead.studio.worker import Job, Worker
from tests.studio.heard import LONG, Heard, wait_until


def test_the_newest_wins_and_clients_take_turns() -> None:
    worker, gate, order = Worker("test"), threading.Event(), []
    one, other = Heard(), Heard()

    def note(name: str) -> None:
        order.append(name)

    worker.submit(Job(one, 0, "wait", lambda _: (gate.wait(LONG), None)[1]))
    wait_until(lambda: worker._running)
    for number in range(1, 6):  # of one channel: all but the last are dropped
        worker.submit(Job(one, number, "look", lambda job: note(f"one {job.number}")))
    worker.submit(Job(one, 6, "why", lambda job: note(f"one {job.number}")))
    worker.submit(Job(other, 7, "look", lambda job: note(f"other {job.number}")))
    gate.set()
    wait_until(lambda: len(order) == 3)
    assert order == ["one 5", "other 7", "one 6"]
    worker.end()
    assert not worker.submit(Job(one, 8, "look", lambda _: None))


def test_a_newer_request_cancels_the_running_one() -> None:
    worker, heard, began = Worker("test"), Heard(), threading.Event()

    def long(job: Job) -> None:
        began.set()
        while True:
            job.check()
            time.sleep(0.001)

    worker.submit(Job(heard, 1, "look", long))
    assert began.wait(LONG)
    worker.submit(Job(heard, 2, "look", lambda job: job.tell("done")))
    wait_until(lambda: heard.of("done"))
    assert [one["id"] for one in heard.of("stopped")] == [1]
    worker.submit(Job(heard, 3, "look", long))
    wait_until(lambda: worker._running)
    worker.drop(heard)  # its page was closed
    wait_until(lambda: not worker._running)
    worker.end()


def test_what_goes_wrong_is_a_message() -> None:
    worker, heard = Worker("test"), Heard()

    def failing(error: Exception) -> Callable[[Job], None]:
        def run(_job: Job) -> None:
            raise error

        return run

    for number, error in enumerate((InputError("no.", hint="do."), MemoryError(), KeyError("x"))):
        worker.submit(Job(heard, number, str(number), failing(error)))
    wait_until(lambda: len(heard.messages) == 3)
    texts = [one["text"] for one in heard.of("error")]
    assert texts == ["no.", "the memory of this machine is full.",
                     "the computation failed: KeyError: 'x'"]  # fmt: skip
    worker.submit(Job(heard, 9, "look", lambda job: job.tell("alive")))
    wait_until(lambda: heard.of("alive"))
    worker.end()


def test_progress_is_told_once_it_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    heard, now = Heard(), [100.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    job = Job(heard, 1, "look", lambda _: None, began=now[0])
    job.progress(1, 3, "reading")
    assert not heard.messages
    now[0] += module.QUIET + 0.1
    job.progress(2, 3, "reading")
    job.progress(3, 3, "reading")  # too soon after the one before
    assert [one["done"] for one in heard.of("progress")] == [2]


def test_too_many_wait() -> None:
    worker, gate = Worker("test"), threading.Event()
    worker.submit(Job(Heard(), 0, "wait", lambda _: (gate.wait(LONG), None)[1]))
    wait_until(lambda: worker._running)
    clients = [Heard() for _ in range(module.MOST_WAITING + 1)]
    accepted = [worker.submit(Job(one, 1, "look", lambda _: None)) for one in clients]
    assert accepted == [True] * module.MOST_WAITING + [False]
    gate.set()
    worker.end()


def test_a_slow_job_pauses_for_quick_ones_and_for_no_slow_one() -> None:
    """Roles that are measured for a minute do not keep anybody from typing."""
    worker, order, ready = Worker("test"), [], threading.Event()
    one, other = Heard(), Heard()

    def long(job: Job) -> None:
        assert ready.wait(LONG)
        for step in range(2):
            order.append(f"{job.number} step {step}")
            job.pause()

    def short(job: Job) -> None:
        order.append(f"{job.number}")
        job.pause()  # nothing: another one pauses for it

    worker.submit(Job(one, 1, "roles", long, slow=True))
    wait_until(lambda: worker._running)
    worker.submit(Job(one, 2, "map", long, slow=True))
    worker.submit(Job(one, 3, "look", short))
    worker.submit(Job(other, 4, "look", short))
    ready.set()
    wait_until(lambda: not worker.busy)
    assert order == ["1 step 0", "3", "4", "1 step 1", "2 step 0", "2 step 1"]
    worker.end()


def test_a_slow_job_is_stopped_while_it_pauses() -> None:
    worker, heard = Worker("test"), Heard()

    def long(job: Job) -> None:
        worker.submit(Job(heard, 2, "look", lambda _: worker.drop(heard, "roles")))
        job.pause()
        job.tell("finished")

    worker.submit(Job(heard, 1, "roles", long, slow=True))
    wait_until(lambda: heard.of("stopped"))
    assert [one["id"] for one in heard.of("stopped")] == [1] and not heard.of("finished")
    worker.end()


def test_texts_of_errors_are_cut_and_shown_as_text() -> None:
    words = module.failed(OSError("\u202e\x1b[2J" + "x" * 9000))
    assert len(words) == 500 and "\u202e" not in words and "\x1b" not in words
