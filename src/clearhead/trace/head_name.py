"""Names of heads: ``L16H5`` is head 5 of layer 16, both counted from 0.

``L16`` is all heads of the layer, ``L16H2:5`` heads 2, 3 and 4, ``L16H1,7`` two of them. ``E3`` is
a layer of an encoder-decoder's encoder, ``C3`` the cross-attention of its decoder's layer 3.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import SupportsIndex

from clearhead.arguments import several, shown, whole_number
from clearhead.errors import InputError

_NAME = re.compile(
    r"(?P<layer>[A-Z][0-9]{1,6})(?:H(?P<heads>[0-9]{1,6}(?:,[0-9]{1,6})*|[0-9]{0,6}:[0-9]{0,6}))?"
)


def parse_name(name: object) -> tuple[str, int | slice | list[int] | None]:
    """The layer's name, and its heads as an index would choose them; None chooses all."""
    found = _NAME.fullmatch(name) if isinstance(name, str) else None
    if found is None:
        raise InputError(
            f"{shown(name)} is no name of a head: wanted L16H5 (layer 16, head 5), L16 (all its "
            "heads) or L16H2:5.",
            hint="seen.layers lists the layers that were seen.",
        )
    layer, heads = _plain(found["layer"]), found["heads"]
    if heads is None:
        return layer, None
    if ":" in heads:
        start, stop = (int(end) if end else None for end in heads.split(":"))
        return layer, slice(start, stop)
    numbers = [int(number) for number in heads.split(",")]
    return layer, numbers[0] if len(numbers) == 1 else numbers


def _plain(layer: str) -> str:
    return f"{layer[0]}{int(layer[1:])}"  # L03 is L3


def pick_heads(
    layer: str, numbers: Sequence[int], chosen: int | slice | Sequence[int]
) -> tuple[int, ...]:
    """The chosen ones of a layer's heads, by their numbers in the model."""
    if isinstance(chosen, slice):
        ends = (chosen.start, chosen.stop)
        if chosen.step not in (None, 1) or not all(
            end is None or (isinstance(end, int) and end >= 0) for end in ends
        ):
            raise InputError(f"{layer}: heads are chosen from : to, without steps; got {chosen}.")
        stop = max(numbers) + 1 if chosen.stop is None else chosen.stop
        wanted = [number for number in numbers if (chosen.start or 0) <= number < stop]
        if not wanted:
            raise InputError(f"{layer}: no heads {chosen.start or 0}:{stop}; {_there(numbers)}.")
        return tuple(wanted)
    single = isinstance(chosen, SupportsIndex) and not getattr(chosen, "ndim", 0)
    listed = [chosen] if single else several("heads", chosen, "numbers")
    numbered = [whole_number("heads (each a number)", number) for number in listed]
    for number in numbered:
        if number not in numbers:
            raise InputError(f"heads: {layer}H{number}: {_there(numbers)}.")
    if not numbered:
        raise InputError(f"{layer}: an empty list of heads chooses none.")
    return tuple(numbered)


def _there(numbers: Sequence[int]) -> str:
    if list(numbers) == list(range(len(numbers))):
        return f"this layer has {len(numbers)} heads, 0 … {len(numbers) - 1}"
    return f"heads {', '.join(map(str, numbers))} were kept"
