"""Ctrl-C ends a command at any time: with one line, exit code 130, and nothing half-written.

Python turns Ctrl-C into an exception in the main thread. Two things can get in the way: a library
that is being imported may catch every exception, and a long computation in compiled code lets no
Python run. So a thread of its own hears of each Ctrl-C at once, waits a moment for the usual way,
and then ends the process.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from typing import NoReturn

EXIT_CODE = 130
GRACE = 1.5  # seconds for the usual way
_SHOW_CURSOR = b"\r\x1b[K\x1b[?25h"

_last_settled = 0.0
_last_heard = -math.inf
_patient = False


def leave_at_once() -> None:
    """Until a command begins, Ctrl-C ends the process at once: nothing is half-written yet."""
    with suppress(ValueError):  # in another thread than the main one
        signal.signal(signal.SIGINT, lambda *_: leave())


def listen() -> None:
    """From now on Ctrl-C is an exception, with the thread behind it."""
    if os.name != "posix" or threading.current_thread() is not threading.main_thread():
        return
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    threading.Thread(target=_hear, args=(read,), daemon=True).start()
    signal.signal(signal.SIGINT, signal.default_int_handler)


def settled() -> None:
    """Ctrl-C has done its work and the command goes on: it only ended an answer of a chat."""
    global _last_settled
    _last_settled = time.monotonic()


def heard() -> bool:
    """True if a Ctrl-C came that nothing has settled: what is raised now may come of it."""
    return _last_heard > _last_settled


def be_patient() -> None:
    """This command ends by itself after Ctrl-C, however long that takes: it saves its state."""
    global _patient
    _patient = True


def leave() -> NoReturn:
    """End the process now, with one line. Nothing here may wait for another thread."""
    writing = sys.modules.get("clearhead.files.atomic_write")  # an import could wait
    if writing is not None and hasattr(writing, "discard_unfinished"):
        writing.discard_unfinished()
    if threading.current_thread() is threading.main_thread():
        with suppress(OSError, ValueError):
            sys.stdout.flush()  # which waits for the reader of a pipe
    with suppress(OSError):
        if os.isatty(2):
            os.write(2, _SHOW_CURSOR)
        os.write(2, b"stopped.\n")
    os._exit(EXIT_CODE)


def _hear(descriptor: int) -> None:
    global _last_heard
    while True:
        signals = os.read(descriptor, 64)
        if signal.SIGINT not in signals:
            continue
        now = _last_heard = time.monotonic()
        while time.monotonic() < now + GRACE and _last_settled < now - GRACE:
            time.sleep(0.05)
        if _last_settled < now - GRACE and not _patient:
            leave()
