"""A limit on what a chat template may compute: loops, calls and characters have a cost."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence, Sized
from itertools import islice
from typing import Any

from jinja2 import TemplateRuntimeError

UNITS = 20_000_000
LONGEST_NUMBER = 256  # bits
_WIDE_FIELD = re.compile(r"\d{4,}|\*")


class Budget:
    """One unit is about one turn of a loop or one character made; a render has twenty million."""

    def __init__(self, units: int = UNITS) -> None:
        self.left = units

    def spend(self, units: int) -> None:
        """Subtract units; raise an error when none are left."""
        self.left -= units
        if self.left < 0:
            raise TemplateRuntimeError("it loops or writes far more than any conversation needs")

    def loop(self, items: Iterable[Any]) -> list[Any]:
        """Return the items of a loop; each costs a unit."""
        collected = list(islice(items, self.left + 1))
        self.spend(len(collected))
        return collected

    def text(self, parts: Iterable[Any]) -> str:
        """Return the parts joined to one text; each character costs a unit."""
        pieces = [str(part) for part in parts]
        self.spend(sum(map(len, pieces)))
        return "".join(pieces)

    def operation(self, name: str, values: Sequence[Any]) -> None:
        """Charge for a method or filter whose result can be larger than its arguments."""
        if name == "replace" and len(values) == 3 and all(isinstance(v, str) for v in values):
            text, old, new = values
            self.spend(len(text) + text.count(old) * len(new))
        elif name == "join":
            total, longest = sum(map(_weight, values)), max(map(_length, values), default=0)
            self.spend(total + longest * min(map(_length, values), default=0))
        else:
            self.spend(math.prod(max(1, _length(value)) for value in values))

    def binary(self, operator: str, left: Any, right: Any) -> None:
        """Charge for ``left operator right``."""
        if operator == "%" and isinstance(left, str):
            check_format(left, [])
            self.spend(len(left) + len(str(right)))
        elif operator == "+" and isinstance(left, Sized):
            self.spend(_length(left) + _length(right))
        elif isinstance(left, Sized) or isinstance(right, Sized):
            self.operation(operator, [left, right])
        else:
            _check_number(operator, left, right)


def check_format(pattern: Any, values: Iterable[Any]) -> None:
    """Refuse to format fields of thousands of characters."""
    wide = isinstance(pattern, str) and _WIDE_FIELD.search(pattern)
    if wide or any(isinstance(value, int) and abs(value) > 9999 for value in values):
        raise TemplateRuntimeError("it formats a field wider than any conversation needs")


def _check_number(operator: str, left: Any, right: Any) -> None:
    """Refuse products and powers beyond any use: a few squarings make numbers of gigabytes."""
    if isinstance(left, int) and isinstance(right, int) and operator in ("*", "**"):
        length, other = left.bit_length(), right.bit_length()
        bits = length * abs(right) if operator == "**" else length + other
        if bits > LONGEST_NUMBER:
            raise TemplateRuntimeError("it computes a number beyond any use")


def _length(value: Any) -> int:
    """The length of a text or list; of a number, itself: it may say how often or how wide."""
    if isinstance(value, int):
        return abs(value)
    return len(value) if isinstance(value, Sized) else 1


def _weight(value: Any) -> int:
    """The characters of a text, or of all texts in a list."""
    if isinstance(value, list | tuple):
        return sum(len(item) if isinstance(item, str) else 1 for item in value)
    return _length(value)
