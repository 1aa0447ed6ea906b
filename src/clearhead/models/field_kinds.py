"""Whether a value is of its field's type: descriptions come from files that anybody wrote."""

from __future__ import annotations

import math
from typing import Any, Literal, get_args, get_origin

from clearhead.attention.rotary import RotaryScaling

_KIND_WORDS = {int: "a whole number", bool: "true or false", str: "text"}


def unlike(value: Any, hint: Any) -> str | None:
    """What was wanted, where a value is not of the field's type."""
    if get_origin(hint) is Literal:
        return None if value in get_args(hint) else f"one of {', '.join(get_args(hint))}"
    options = get_args(hint) if type(None) in get_args(hint) else (hint,)
    if value is None:
        return None if type(None) in options else "given"
    if hint == RotaryScaling | None:
        return None if isinstance(value, RotaryScaling) else "a rotary scaling"
    wanted = options[0]
    if get_origin(wanted) is tuple:
        fits = isinstance(value, tuple) and all(
            unlike(item, get_args(wanted)[0]) is None for item in value
        )
        return None if fits else f"a list, each entry {_KIND_WORDS[get_args(wanted)[0]]}"
    if wanted is float:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return None if number and math.isfinite(value) else "a finite number"
    fits = isinstance(value, wanted) and (wanted is bool or not isinstance(value, bool))
    return None if fits else _KIND_WORDS[wanted]
