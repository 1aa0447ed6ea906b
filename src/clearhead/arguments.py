"""Checks of single arguments: numbers, flags, choices, texts, paths. Each returns the plain value.

>>> whole_number("window", 3, least=1)
3
>>> whole_number("window", 2.5, least=1)
Traceback (most recent call last):
...
clearhead.errors.InputError: window must be a whole number of 1 or more; got 2.5.
"""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager, suppress
from decimal import Decimal
from numbers import Real
from pathlib import Path
from typing import Any, SupportsIndex

from clearhead.errors import InputError

REAL = (Real, Decimal)
MOST_ENTRIES = 2**26  # of a list: a longer one is a mistake
LONGEST_NAME = 255  # bytes of a file's name, on every system
LONGEST_SHOWN = 60  # characters of a wrong value in an error


def whole_number(
    name: str, value: object, *, least: int | None = None, most: int | None = None,
    error: type[InputError] = InputError,
) -> int:  # fmt: skip
    """The argument as an int; NumPy's whole numbers are fine, booleans and floats are not."""
    number = value if type(value) is int else _index(value)
    if (
        number is None
        or (least is not None and number < least)
        or (most is not None and number > most)
    ):
        raise error(f"{name} must be {_wanted('a whole number', least, most)}; got {shown(value)}.")
    return number


def _index(value: object) -> int | None:
    """What is no plain int as one; None if it is no whole number."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        return None
    try:
        return operator.index(value)
    except (TypeError, ValueError, RuntimeError):  # a tensor of floats, of several, without memory
        return None


def real_number(
    name: str, value: object, *, least: int | float | None = None, above: int | float | None = None,
    most: int | float | None = None, error: type[InputError] = InputError,
) -> float:  # fmt: skip
    """The argument as a finite float; whole and NumPy's numbers are fine, tensors are not."""
    wanted = _wanted("a finite number", least, most, above)
    if type(value) is not float and hasattr(value, "requires_grad"):
        raise error(
            f"{name} must be {wanted}; got a tensor.",
            hint=f"float({name}) if it is a constant; a number that is learned belongs into the "
            "computation before the call.",
        )
    if type(value) is not float and (isinstance(value, bool) or not isinstance(value, REAL)):
        raise error(f"{name} must be {wanted}; got {shown(value)}.")
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if (
        not math.isfinite(number)
        or (least is not None and number < least)
        or (above is not None and number <= above)
        or (most is not None and number > most)
    ):
        raise error(f"{name} must be {wanted}; got {shown(value)}.")
    return number


def flag(name: str, value: object, *, error: type[InputError] = InputError) -> bool:
    """The argument as a bool; NumPy's booleans are fine, other truthy things are not."""
    if isinstance(value, bool):
        return value
    if type(value).__name__ in ("bool", "bool_") and type(value).__module__ == "numpy":
        return bool(value)
    raise error(f"{name} must be True or False; got {shown(value)}.")


def one_of(
    name: str, value: object, choices: Collection[object], *, error: type[InputError] = InputError
) -> None:
    """Refuse a value that is none of the choices, whatever it is: it may not even have a hash."""
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        listed = ", ".join(map(repr, choices))
        raise error(f"{name} must be one of {listed}; got {shown(value)}.")


def several(name: str, value: object, what: str) -> list[Any]:
    """The entries of a list, tuple, set, range, array …; ``what`` says of what.

    A single string is no list, and what does not know its own length might never end.
    """
    odd = isinstance(value, str | bytes | Mapping | type)
    if isinstance(value, Sized) and isinstance(value, Iterable) and not odd:
        with suppress(Exception):  # a tensor without memory or axes, an array of an odd kind …
            if len(value) <= MOST_ENTRIES:
                return list(value)
    raise InputError(f"{name} must be a list of {what}; got {shown(value)}.")


def text(name: str, value: object) -> str:
    """The argument as it is: a string of whole characters, which UTF-8 can encode."""
    if not isinstance(value, str):
        raise InputError(f"{name} must be a string; got {shown(value)}.")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{name} holds half a character (a lone surrogate) at position {error.start}.",
            hint='it was probably read with errors="surrogateescape"; read it as UTF-8.',
        ) from None
    return value


def path(name: str, value: object) -> Path:
    """The argument as a path that the system can have: a string or a Path, without NUL."""
    if not isinstance(value, str | os.PathLike) or isinstance(os.fspath(value), bytes):
        raise InputError(f"{name} must be a path, as a string or a Path; got {shown(value)}.")
    given = os.fspath(value)
    if not given or "\0" in given:
        raise InputError(f"{name} must be a path; got {shown(given)}.")
    try:
        parts = os.fsencode(given).split(b"/")
    except UnicodeEncodeError:
        raise InputError(f"{name} must be a path; got {shown(given)}, half a character.") from None
    if max(map(len, parts)) > LONGEST_NAME:
        raise InputError(f"{name} must be a path; got {shown(given)}, which is too long for one.")
    return Path(given)


@contextmanager
def about(name: str) -> Iterator[None]:
    """An error that comes from inside names the argument that it is about."""
    try:
        yield
    except InputError as error:
        if name in error.message:
            raise
        raise InputError(f"{name}: {error.message}", hint=error.hint) from None


def shown(value: object) -> str:
    """A wrong value as an error shows it: short, and whatever its own ``repr`` does."""
    try:
        text = repr(value)
    except Exception:  # a repr may fail in any way, and the error must not
        text = f"<{type(value).__name__}>"
    if len(text) > LONGEST_SHOWN or "\n" in text:
        return f"<{type(value).__name__}>"
    return text


def _wanted(
    kind: str,
    least: int | float | None,
    most: int | float | None,
    above: int | float | None = None,
) -> str:
    if above is not None:
        return f"{kind} above {above}" + ("" if most is None else f" up to {most}")
    if least is not None and most is not None:
        return f"{kind} from {least} to {most}"
    if least is not None:
        return f"{kind} of {least} or more"
    return kind if most is None else f"{kind} of at most {most}"
