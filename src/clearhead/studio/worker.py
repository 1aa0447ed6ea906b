"""One thread computes for one model: one job at a time, newest wins, clients take turns.

A slow job, such as the map of a long text, pauses between two of its steps for the quicker ones
that have come meanwhile: nobody waits for minutes because somebody else measures something.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from clearhead.errors import ClearheadError
from clearhead.visible import visible_text

MOST_WAITING = 1000  # jobs of all clients; more are refused
QUIET = 1.0  # seconds before progress is told
BETWEEN = 0.1  # and between two reports


class Cancelled(Exception):  # noqa: N818 - nothing went wrong
    """A newer request, or its client, has no use for a job any more."""


class Listener(Protocol):
    """Who asked for a job: it is told how it goes."""

    def tell(self, kind: str, number: int, payload: bytes = b"", /, **fields: object) -> None:
        """Send a message; any thread may."""


@dataclass(eq=False)
class Job:
    """Something to compute for a client; ``channel`` names what a newer request replaces."""

    client: Listener
    number: int
    channel: str
    run: Callable[[Job], None]
    over: threading.Event = field(default_factory=threading.Event)
    began: float = 0.0
    told: float = 0.0
    slow: bool = False  # it is not run where another one pauses
    others: Callable[[], None] = lambda: None  # runs those that wait and are not slow

    def check(self) -> None:
        """Raise Cancelled if nobody waits for the result."""
        if self.over.is_set():
            raise Cancelled

    def tell(self, kind: str, payload: bytes = b"", /, **fields: object) -> None:
        """Send a result, or a part of it, unless a newer request has come."""
        self.check()
        self.client.tell(kind, self.number, payload, **fields)

    def pause(self) -> None:
        """Let quick ones go first; nothing of this job may be half done meanwhile."""
        self.check()
        self.others()
        self.check()

    def progress(self, done: int, total: int, what: str) -> None:
        """Say how far it is, once it takes long."""
        self.check()
        now = time.monotonic()
        if now - self.began > QUIET and now - self.told > BETWEEN:
            self.told = now
            self.tell("progress", done=done, total=total, what=what)


class Worker:
    """A thread with the waiting jobs of all clients, of each client and channel the newest."""

    def __init__(self, name: str) -> None:
        self._changed = threading.Condition()
        self._waiting: OrderedDict[Listener, OrderedDict[str, Job]] = OrderedDict()
        self._running: list[Job] = []  # the last one is computed; those before it pause
        self._ending = False
        self._thread = threading.Thread(target=self._work, name=f"studio {name}", daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> bool:
        """Let a job wait; False if too many wait already. Older ones of its channel are dropped."""
        with self._changed:
            self.drop(job.client, job.channel)
            if self._ending or sum(map(len, self._waiting.values())) >= MOST_WAITING:
                return False
            self._waiting.setdefault(job.client, OrderedDict())[job.channel] = job
            self._changed.notify()
        return True

    @property
    def busy(self) -> bool:
        """True while a job runs or waits."""
        return bool(self._running or self._waiting)

    def drop(self, client: Listener, channel: str | None = None) -> None:
        """Cancel the jobs of a client: those of one channel, or all."""
        with self._changed:
            jobs = self._waiting.get(client, OrderedDict())
            for name in list(jobs) if channel is None else [channel]:
                found = jobs.pop(name, None)
                if found is not None:
                    found.over.set()
                    client.tell("stopped", found.number)
            if not jobs:
                self._waiting.pop(client, None)
            for now in self._running:
                if now.client is client and channel in (None, now.channel):
                    now.over.set()

    def end(self) -> None:
        """Cancel everything and stop; returns when the thread has ended, or after some seconds."""
        self.stop()
        self._thread.join(timeout=10)

    def stop(self) -> None:
        """Cancel everything; the thread ends once it has seen that."""
        with self._changed:
            self._ending = True
            for client in list(self._waiting):
                self.drop(client)
            for now in self._running:
                now.over.set()
            self._changed.notify()

    def _next(self) -> Job | None:
        with self._changed:
            while not self._waiting and not self._ending:
                self._changed.wait()
            if self._ending:
                return None
            return self._taken(next(iter(self._waiting)))

    def _taken(self, client: Listener, slow: bool = True) -> Job | None:
        """The next job of a client, as running from now on; unless ``slow``, the next quick one."""
        jobs = self._waiting[client]
        channel = next((name for name, job in jobs.items() if slow or not job.slow), None)
        if channel is None:
            return None
        job = jobs.pop(channel)
        del self._waiting[client]
        if jobs:
            self._waiting[client] = jobs  # behind all others: clients take turns
        self._running.append(job)
        return job

    def _work(self) -> None:
        while (job := self._next()) is not None:
            job.others = self._run_quick
            self._run(job)

    def _run(self, job: Job) -> None:
        job.began = time.monotonic()
        try:
            _run(job)
        finally:
            with self._changed:
                self._running.remove(job)

    def _run_quick(self) -> None:
        """Run the quick jobs that wait now, while another one pauses."""
        with self._changed:
            most = sum(map(len, self._waiting.values()))
        for _ in range(most):  # no more: the one that pauses has its turn, too
            with self._changed:
                taken = (self._taken(client, slow=False) for client in list(self._waiting))
                job = next((one for one in taken if one is not None), None)
            if job is None:
                return
            self._run(job)


def _run(job: Job) -> None:
    """Run a job; what goes wrong becomes a message."""
    try:
        job.check()
        job.run(job)
    except Cancelled:
        job.client.tell("stopped", job.number)
    except ClearheadError as error:
        job.client.tell("error", job.number, text=error.message, hint=error.hint)
    except MemoryError:
        job.client.tell("error", job.number, text="the memory of this machine is full.", hint=None)
    except OSError as error:
        job.client.tell("error", job.number, text=failed(error), hint=None)
    except Exception as error:  # a defect: the page goes on, and says what to report
        hint = "this is a defect of clearhead."
        job.client.tell("error", job.number, text=failed(error), hint=hint)


def failed(error: Exception) -> str:
    """An error that nobody foresaw, in words; what it holds is shown as text, and cut."""
    return f"the computation failed: {type(error).__name__}: {visible_text(str(error))}"[:500]
