"""The oracle: what may come of a mutant, and what is a failure."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from clearhead.errors import ClearheadError

GOOD = ("loaded", "refused")
FAILURES = ("raw error", "crash", "time", "memory")
SOURCE = "/clearhead/"


@dataclass(frozen=True)
class Outcome:
    """What came of one mutant.

    ``loaded``: it was read, and the use of it worked. ``refused``: one of our errors. Failures are
    another exception, the death of the process, too much time, too much memory.
    """

    number: int
    what: str
    error: str = ""
    place: str = ""  # file and line of clearhead where it happened
    seconds: float = 0.0
    megabytes: float = 0.0

    @property
    def failed(self) -> bool:
        return self.what in FAILURES

    @property
    def key(self) -> tuple[str, str, str]:
        """Failures with the same key have the same cause, as far as one can tell."""
        return self.what, self.error.partition(":")[0], self.place

    def fields(self) -> dict[str, Any]:
        return asdict(self)


def judged(number: int, use: Callable[[], object]) -> Outcome:
    """Use what a mutant gives, and say what came of it; time and memory are judged elsewhere."""
    try:
        use()
    except ClearheadError as error:
        return Outcome(number, "refused", _short(error))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of Rust is no Exception
        return Outcome(number, "raw error", _short(error), _place(error))
    return Outcome(number, "loaded")


def _short(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception as unspeakable:
        text = f"its text fails with {type(unspeakable).__name__}"
    clean = text.encode("ascii", "backslashreplace").decode()
    return f"{type(error).__name__}: {clean[:160]}"


def _place(error: BaseException) -> str:
    """The innermost line of ours, without its number: that moves."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if SOURCE in frame.filename:
            return f"{Path(frame.filename).name}: {frame.line}"
    return ""
