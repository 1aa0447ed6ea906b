"""What a page may ask for: one JSON object, every field checked before anything is computed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from clearhead.errors import InputError
from clearhead.studio.dropped import PIECE
from clearhead.visible import visible_text

LONGEST_MESSAGE = 5_000_000  # bytes; a longer one ends the connection
LONGEST_TEXT = 1_000_000  # characters
LONGEST_PIECE = PIECE * 4 // 3 + 4  # characters of a piece of a file, in base64
MOST_TOKENS = 4096  # that a page may send along, or ask for
PANES = 2

Check = Callable[[Any], Any]


def parsed(message: str | bytes) -> tuple[int, str, dict[str, Any]]:
    """The number of a request, what it asks for, and its fields.

    Raises:
        InputError: it is no JSON, asks for something unknown, or a field is missing or wrong.
    """
    try:
        found = json.loads(message)
    except (ValueError, RecursionError):
        raise InputError("a message is one JSON object; this is none.") from None
    if not isinstance(found, dict):
        raise InputError(f"a message is one JSON object; got {type(found).__name__}.")
    number, asked = found.pop("id", None), found.pop("do", None)
    if not is_count(number, 2**53):
        raise InputError("a message has an id, a whole number.")
    if not isinstance(asked, str) or asked not in KINDS:
        raise InputError(f"a message asks for one of {', '.join(KINDS)}; got {_short(asked)}.")
    return number, asked, _fields(asked, found)


def _fields(asked: str, given: dict[str, Any]) -> dict[str, Any]:
    wanted = KINDS[asked]
    unknown = set(given) - set(wanted)
    if unknown:
        raise InputError(f"{asked} has no field {_short(sorted(unknown)[0])}.")
    fields = {}
    for name, (check, default) in wanted.items():
        if name not in given and default is REQUIRED:
            raise InputError(f"{asked} needs the field {name}.")
        value = given.get(name, default)
        if value is not default and not check(value):
            raise InputError(f"{asked}: {name} cannot be {_short(value)}.")
        fields[name] = value
    return fields


def _short(value: object) -> str:
    text = visible_text(repr(value))
    return text if len(text) <= 60 else f"{text[:59]}…"


def is_count(value: object, most: int) -> bool:
    """True for a whole number from 0 to ``most``."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def is_number(value: object, least: float, most: float) -> bool:
    """True for a finite number within these limits."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and least <= value <= most


def _count(most: int) -> Check:
    return lambda value: is_count(value, most)


def _some(value: object) -> bool:
    """How many tokens to write: one or more."""
    return is_count(value, 2048) and value != 0


def _text(longest: int) -> Check:
    return lambda value: isinstance(value, str) and len(value) <= longest


def _ids(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) <= MOST_TOKENS
        and all(is_count(one, 2**31) for one in value)
    )


def _place(value: object) -> bool:
    """The place of a tile: level, row, column."""
    return isinstance(value, list) and len(value) == 3 and all(is_count(i, 2**31) for i in value)


def _settings(value: object) -> bool:
    if not isinstance(value, dict) or not set(value) <= {"temperature", "top_k", "top_p", "min_p"}:
        return False
    top_k = value.get("top_k")
    return (
        is_number(value.get("temperature", 1.0), 0, 100)
        and (top_k is None or (is_count(top_k, 2**31) and top_k > 0))
        and (value.get("top_p") is None or is_number(value["top_p"], 1e-9, 1))
        and (value.get("min_p") is None or is_number(value["min_p"], 0, 1))
    )


def _switched(value: object) -> bool:
    """What is switched off: heads by name, edges with the position of their source."""
    return isinstance(value, list) and len(value) <= 512 and all(map(_one_switched, value))


def _one_switched(one: object) -> bool:
    return (
        isinstance(one, dict)
        and set(one) <= {"head", "source"}
        and isinstance(one.get("head"), str)
        and len(one["head"]) <= 20
        and (one.get("source") is None or is_count(one["source"], 2**31))
    )


def _two_heads(value: object) -> bool:
    return isinstance(value, list) and len(value) == PANES and all(map(_text(20), value))


REQUIRED: Any = object()
_PANE = (_count(PANES - 1), REQUIRED)
_ANY_PANE = (_count(PANES - 1), 0)
_MODEL = (_text(1000), REQUIRED)
_TEXT = (_text(LONGEST_TEXT), REQUIRED)
_WRITTEN = (_ids, ())
_NAME = (_text(100), None)

KINDS: Mapping[str, Mapping[str, tuple[Check, Any]]] = {
    "models": {},
    "load": {"model": _MODEL, "pane": _ANY_PANE},
    "look": {"pane": _PANE, "model": _MODEL, "text": _TEXT, "ids": _WRITTEN, "head": _NAME},
    "block": {"pane": _PANE, "look": (_count(2**53), REQUIRED), "name": (_text(100), REQUIRED)},
    "write": {
        "pane": _PANE, "model": _MODEL, "text": _TEXT, "ids": _WRITTEN,
        "settings": (_settings, REQUIRED), "count": (_some, REQUIRED),
        "seed": (_count(2**53), REQUIRED),
    },
    "settings": {"pane": _PANE, "settings": (_settings, REQUIRED)},
    "token": {"pane": _PANE, "model": _MODEL, "text": _TEXT, "ids": _WRITTEN},
    "why": {
        "pane": _PANE, "model": _MODEL, "text": _TEXT, "ids": _WRITTEN,
        "position": (_count(2**31), REQUIRED), "token": (_count(2**31), None),
        "rank": (_count(1000), 0), "instead": (_count(2**31), None),
    },
    "without": {
        "pane": _PANE, "model": _MODEL, "text": _TEXT, "ids": _WRITTEN,
        "position": (_count(2**31), REQUIRED), "off": (_switched, REQUIRED),
        "write": (_count(64), 0),
    },
    "map": {"pane": _PANE, "model": _MODEL, "text": _TEXT, "head": _NAME},
    "tile": {"pane": _PANE, "map": (_count(2**53), REQUIRED), "place": (_place, REQUIRED)},
    "small_maps": {"pane": _PANE},
    "chapter": {},
    "drop": {
        "name": (_text(300), REQUIRED), "size": (_count(2**53), REQUIRED),
        "first": (_count(2**53), REQUIRED), "data": (_text(LONGEST_PIECE), REQUIRED),
    },
    "compare": {"heads": (_two_heads, None)},
    "roles": {
        "model": _MODEL, "pane": _ANY_PANE,
        "measure": (lambda value: isinstance(value, bool), False),
    },
    "save": {
        "pane": _PANE, "what": (_text(20), REQUIRED), "format": (_text(10), REQUIRED),
        "head": _NAME, "word": (_count(2**31), None),
    },
    "stop": {"pane": (_count(PANES - 1), None)},  # None: on both sides
}  # fmt: skip
