"""When operations are followed: while a module runs whose code may compute attention by itself."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

from clearhead.trace.watching.doors.unfused.mode import UnfusedMode
from clearhead.trace.watching.watchers import observe

_MODE: ContextVar[UnfusedMode | None] = ContextVar("unfused", default=None)


def is_followed() -> bool:
    """True inside of a module whose operations are followed."""
    return _MODE.get() is not None


class steps_paused:  # noqa: N801 - a context manager
    """Follow nothing in the block: another door describes it. A new mode may be begun in it."""

    def __enter__(self) -> None:
        self._mode = _MODE.get()
        if self._mode is not None:
            self._mode.paused += 1
            self._token = _MODE.set(None)

    def __exit__(self, *_: object) -> None:
        if self._mode is not None:
            self._mode.paused -= 1
            _MODE.reset(self._token)


def follow_steps() -> Callable[[], None]:
    """Follow the operations of a module that begins; returns what to call when it ends."""
    if _MODE.get() is not None:
        return _nothing
    mode = UnfusedMode()
    mode.__enter__()  # type: ignore[no-untyped-call]
    token = _MODE.set(mode)

    def end() -> None:
        mode.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        _MODE.reset(token)
        observe(mode.calls.flush)

    return end


def _nothing() -> None:
    """A module within another one that is followed already."""
