"""A limit on what a chat template may compute. One unit is a byte made, or ten nanoseconds of work.

Every operation is charged before it runs, by what it may cost at most. So what a rendering takes in
time and in memory is bounded by its units. The clock is the second line, should a price be too low.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from jinja2 import TemplateRuntimeError

UNITS = 30_000_000
SECONDS = 0.8  # of processor time, for so many units
PER_INPUT = 10  # units more for each unit of the messages: a long conversation costs more
BETWEEN_LOOKS = 200_000  # units from one look at the clock to the next
LONGEST_NUMBER = 256  # bits
FAR_MORE = "it loops or writes far more than any conversation needs"


class Budget:
    """What is left for one rendering. ``spend`` is called before each operation.

    ``reserve`` weighs the messages once the units are used up: a long conversation may cost more.
    """

    __slots__ = ("deadline", "left", "mark", "reserve")

    def __init__(self, units: int = UNITS, reserve: Callable[[], int] | None = None) -> None:
        self.deadline = time.thread_time() + SECONDS
        self.left = units
        self.mark = max(0, units - BETWEEN_LOOKS)
        self.reserve = reserve

    def spend(self, units: int) -> None:
        """Subtract units; raise an error when none are left."""
        self.left -= units
        if self.left < self.mark:
            self._look()

    def _look(self) -> None:
        """Look at the clock and at what is left."""
        late = time.thread_time() > self.deadline
        if (late or self.left < 0) and self.reserve is not None:
            more, self.reserve = PER_INPUT * self.reserve(), None
            self.left += more
            self.deadline += SECONDS * more / UNITS
            late = time.thread_time() > self.deadline
        if late or self.left < 0:
            self.left, self.mark = -1, 0
            raise TemplateRuntimeError(FAR_MORE)
        self.mark = max(0, self.left - BETWEEN_LOOKS)


def checked_number(number: Any) -> int | float:
    """A number that came out of a computation; refused if it is beyond any use."""
    kind = type(number)
    if kind is int and number.bit_length() > LONGEST_NUMBER:
        raise TemplateRuntimeError("it computes a number beyond any use")
    if kind is not int and kind is not float and kind is not bool:
        raise TemplateRuntimeError(f"it computes a {kind.__name__}")
    assert isinstance(number, int | float)
    return number
