"""Checks of single arguments: whole numbers, real numbers, flags. Each returns the plain value.

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
from typing import SupportsFloat, SupportsIndex

from clearhead.errors import InputError

LONGEST_SHOWN = 60  # characters of a wrong value in an error


def whole_number(
    name: str, value: object, *, least: int | None = None, most: int | None = None
) -> int:
    """The argument as an int; NumPy's whole numbers are fine, booleans and floats are not."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise InputError(
            f"{name} must be {_wanted('a whole number', least, most)}; got {shown(value)}."
        )
    try:
        number = operator.index(value)
    except (TypeError, ValueError):  # a tensor of floats, or of several numbers
        number = None
    if (
        number is None
        or (least is not None and number < least)
        or (most is not None and number > most)
    ):
        raise InputError(
            f"{name} must be {_wanted('a whole number', least, most)}; got {shown(value)}."
        )
    return number


def real_number(
    name: str, value: object, *, least: int | float | None = None, above: int | float | None = None,
    most: int | float | None = None,
) -> float:  # fmt: skip
    """The argument as a finite float; whole and NumPy's numbers are fine, tensors are not."""
    wanted = _wanted("a finite number", least, most, above)
    if isinstance(value, bool | str | bytes) or not isinstance(value, SupportsFloat):
        raise InputError(f"{name} must be {wanted}; got {shown(value)}.")
    if hasattr(value, "requires_grad"):
        raise InputError(
            f"{name} must be {wanted}; got a tensor.",
            hint=f"float({name}) if it is a constant; a number that is learned belongs into the "
            "computation before the call.",
        )
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
        raise InputError(f"{name} must be {wanted}; got {shown(value)}.")
    return number


def flag(name: str, value: object) -> bool:
    """The argument as a bool; NumPy's booleans are fine, other truthy things are not."""
    if isinstance(value, bool):
        return value
    if type(value).__name__ in ("bool", "bool_") and type(value).__module__ == "numpy":
        return bool(value)
    raise InputError(f"{name} must be True or False; got {shown(value)}.")


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
