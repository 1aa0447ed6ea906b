"""Ctrl-C ends a command at any time: with one line, exit code 130, and nothing half-written.

Python turns Ctrl-C into an exception in the main thread. Three things can get in the way: a library
that is being imported may catch every exception, a long computation in compiled code lets no Python
run, and in a callback (of a weak reference, a ``__del__``) Python prints an exception and drops it.
So a thread of its own hears of each Ctrl-C at once, raises a dropped one again, waits a moment for
the usual way, and then ends the process.
"""

from __future__ import annotations

import math
import os
import select
import signal
import sys
import threading
import time
from contextlib import suppress
from types import FrameType
from typing import NoReturn

EXIT_CODE = 130
GRACE = 1.5  # seconds for the usual way
MOMENT = 0.05  # seconds between two looks; a callback is over by then
_DROPPED = 0  # among the numbers of signals: Python dropped the exception of a Ctrl-C
_SHOW_CURSOR = b"\r\x1b[K\x1b[?25h"

_raised = False  # what Ctrl-C raised is not settled; only the main thread sets it
_last_settled = -math.inf
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

    def dropped(unraisable: sys.UnraisableHookArgs) -> None:
        if isinstance(unraisable.exc_value, KeyboardInterrupt):
            os.write(write, bytes([_DROPPED]))
        elif not heard():  # else what Ctrl-C cut in two is cleaning up
            sys.__unraisablehook__(unraisable)

    sys.unraisablehook = dropped
    signal.signal(signal.SIGINT, _interrupt)


def settled() -> None:
    """Ctrl-C has done its work and the command goes on: it only ended an answer of a chat."""
    global _raised, _last_settled
    _raised = False
    _last_settled = time.monotonic()


def heard() -> bool:
    """True if a Ctrl-C came that nothing has settled: what is raised now may come of it."""
    return _raised


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


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    global _raised
    _raised = True
    signal.default_int_handler(number, frame)


def _hear(descriptor: int) -> None:
    """Wait for each Ctrl-C; end the process if nothing came of it."""
    waits = False  # for what comes of the last Ctrl-C
    began = 0.0
    while True:
        if select.select([descriptor], [], [], MOMENT if waits else None)[0]:
            signals = os.read(descriptor, 64)
            if _DROPPED in signals:
                time.sleep(MOMENT)
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            elif signal.SIGINT in signals and not waits:
                began = time.monotonic()
                waits = True
        if not waits:
            continue
        if _last_settled >= began - GRACE:
            waits = False
        elif time.monotonic() >= began + GRACE:
            if not _patient:
                leave()
            waits = False
