"""Type checks of config fields, whose values come from files that anybody may have written."""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin

from clearhead.attention.rotary import RotaryScaling

LARGEST_FLOAT = 1e30  # with room below float32's largest: models compute with these numbers
LARGEST_WHOLE = 2**62  # torch takes whole numbers of 64 bits, also where any number will do
_TYPE_NAMES = {int: "a whole number", bool: "true or false", str: "text"}


def type_mismatch(value: Any, hint: Any) -> str | None:
    """Return what was wanted if ``value`` is not of the field's type, else None."""
    if get_origin(hint) is Literal:
        known = isinstance(value, str) and value in get_args(hint)
        return None if known else f"one of {', '.join(get_args(hint))}"
    options = get_args(hint) if type(None) in get_args(hint) else (hint,)
    if value is None:
        return None if type(None) in options else "given"
    if hint == RotaryScaling | None:
        return None if isinstance(value, RotaryScaling) else "a rotary scaling"
    wanted = options[0]
    if get_origin(wanted) is tuple:
        fits = isinstance(value, tuple) and all(
            type_mismatch(item, get_args(wanted)[0]) is None for item in value
        )
        return None if fits else f"a list, each entry {_TYPE_NAMES[get_args(wanted)[0]]}"
    if wanted is float:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        most = LARGEST_WHOLE if isinstance(value, int) else LARGEST_FLOAT
        return None if number and abs(value) <= most else "a finite number"  # NaN is not
    fits = isinstance(value, wanted) and (wanted is bool or not isinstance(value, bool))
    return None if fits else _TYPE_NAMES[wanted]
