"""SIGINT (Ctrl-C) and SIGTERM as a wish to stop after the step; a second one ends the process."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)
RELAYED = 10.0  # seconds in which torchrun may pass on a signal that came from the terminal, too


class StopSignals:
    """Inside ``with``, the first signal is noted; the next one does what it did before.

    An object of it is the ``stop`` that ``ch.train`` asks after each step. Only the main thread
    gets signals: in another thread, nothing is noted. Until it is ``armed``, a signal ends the
    program at once: before the first step there is nothing to finish.

    >>> with StopSignals() as stop:
    ...     os.kill(os.getpid(), signal.SIGTERM)
    ...     stop(), stop.exit_code
    (True, 143)
    """

    def __init__(self, *, armed: bool = True) -> None:
        self.armed = armed
        self.received: int | None = None
        self._at = 0.0
        self._before: dict[int, Any] = {}
        self._relays = int(os.environ.get("WORLD_SIZE", "1")) > 1

    def __call__(self) -> bool:
        """True if a signal has come."""
        return self.received is not None

    @property
    def exit_code(self) -> int:
        """128 plus the number of the signal, as shells do: 130 for SIGINT, 143 for SIGTERM.

        If another process of the run got it, SIGTERM's.
        """
        return 128 + (signal.SIGTERM if self.received is None else self.received)

    def __enter__(self) -> StopSignals:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._note) for number in SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        self._before = {}

    def arm(self) -> None:
        """From now on, the first signal is a wish."""
        self.armed = True

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.received is None and self.armed:
            self.received, self._at = number, time.monotonic()
            return
        if self.received is not None and self._relays and time.monotonic() - self._at < RELAYED:
            return  # the terminal tells every process, and torchrun tells them once more
        handler: Callable[[int, FrameType | None], Any] | int | None = self._before.get(number)
        if callable(handler):
            handler(number, frame)
        elif not self.armed and not self._relays:
            raise SystemExit(128 + number)  # with a word, which the default has not
        else:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
