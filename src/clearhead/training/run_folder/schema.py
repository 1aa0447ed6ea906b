"""From JSON values, which anybody may have written, to dataclasses: every field typed and checked.

A file of a run folder is described by a dataclass. Its annotations are the schema: names that are
missing or unknown, and values of another kind, are refused with the path of the file.
"""

from __future__ import annotations

import dataclasses
import math
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from clearhead.arguments import shown
from clearhead.errors import CheckpointError

T = TypeVar("T")
LARGEST_WHOLE = 2**62
WORDS = {
    bool: "true or false", int: "a whole number", float: "a finite number", str: "text",
    NoneType: "null",
}  # fmt: skip


class SchemaError(CheckpointError):
    """A value in a file is missing, unknown or of another kind than the file's schema says."""


def from_json(kind: type[T], value: object, where: str) -> T:
    """The dataclass ``kind`` from the JSON object ``value``; ``where`` names it in errors.

    Raises:
        SchemaError: a name is missing or unknown, a value is of another kind, or the dataclass
            itself refuses them with a ``ValueError``.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Point:
    ...     place: tuple[int, ...]
    >>> from_json(Point, {"place": [3, 5]}, "point.json")
    Point(place=(3, 5))
    >>> from_json(Point, {"place": [3, "5"]}, "point.json")
    Traceback (most recent call last):
    clearhead.training.run_folder.schema.SchemaError: point.json: place[1] must be a whole number; \
got '5'.
    """
    if not isinstance(value, dict):
        raise SchemaError(f"{where} must be an object with names; got {shown(value)}.")
    hints = get_type_hints(kind)
    names = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    for problem, found in (
        ("lacks", set(names) - set(value)),
        ("knows no", set(value) - set(names)),
    ):
        if found:
            raise SchemaError(f"{where} {problem} {', '.join(sorted(map(_short, found)))}.")
    try:
        return kind(**{name: _checked(hints[name], value[name], where, name) for name in names})
    except ValueError as error:
        raise SchemaError(f"{where}: {error}") from None


def _checked(hint: Any, value: Any, where: str, name: str) -> Any:
    """The value as the annotation wants it: lists become tuples, whole numbers floats."""
    options = get_args(hint) if get_origin(hint) is UnionType else (hint,)
    if value is None and NoneType in options:
        return None
    wanted = next(option for option in options if option is not NoneType)
    origin = get_origin(wanted)
    if dataclasses.is_dataclass(wanted):
        return from_json(wanted, value, f"{where}: {name}")  # type: ignore[arg-type]
    if origin is tuple and isinstance(value, list):
        return _entries(get_args(wanted), value, where, name)
    if origin is dict and isinstance(value, dict):
        inside = get_args(wanted)[1]
        return {
            key: _checked(inside, v, where, f"{name}.{_short(key)}") for key, v in value.items()
        }
    if origin is None:
        return _plain(wanted, value, where, name)
    raise SchemaError(f"{where}: {name} must be {_kind(wanted)}; got {shown(value)}.")


def _entries(hints: tuple[Any, ...], values: list[Any], where: str, name: str) -> tuple[Any, ...]:
    if hints[-1] is Ellipsis:
        hints = (hints[0],) * len(values)
    if len(hints) != len(values):
        raise SchemaError(f"{where}: {name} must have {len(hints)} entries; got {len(values)}.")
    pairs = enumerate(zip(hints, values, strict=True))
    return tuple(_checked(hint, value, where, f"{name}[{n}]") for n, (hint, value) in pairs)


def _plain(wanted: Any, value: Any, where: str, name: str) -> Any:
    if wanted is Any:
        return value
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if wanted is float and number and abs(value) <= LARGEST_WHOLE and math.isfinite(value):
        return float(value)
    if wanted is int and type(value) is int and abs(value) <= LARGEST_WHOLE:
        return value
    if wanted in (bool, str) and isinstance(value, wanted):
        return value
    raise SchemaError(f"{where}: {name} must be {_kind(wanted)}; got {shown(value)}.")


def _kind(wanted: Any) -> str:
    if get_origin(wanted) is tuple:
        return "a list"
    return "an object with names" if get_origin(wanted) is dict else WORDS[wanted]


def _short(name: str) -> str:
    return name if len(name) <= 40 else name[:39] + "…"
