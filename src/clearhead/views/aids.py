"""Reading aids from keyword arguments, checked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

from clearhead.arguments import one_of
from clearhead.explain.pictures import Aids, Colour, Hide, Measure, Pool

CHOICES: dict[str, tuple[object, ...]] = {
    "words": (True, False),
    "hide": get_args(Hide),
    "colour": get_args(Colour),
    "pool": get_args(Pool),
    "measure": get_args(Measure),
}


def checked_aids(aids: Aids | None = None, **changes: Any) -> Aids:
    """The aids with these changes; a value that none of them has is refused."""
    for name, value in changes.items():
        one_of(name, value, CHOICES[name])
    return replace(aids or Aids(), **changes)
