"""Numbers of real models in the course: from files beside this module, or out of ``dates``.

``docs/course_numbers.py`` makes ``data/smollm2.json``, and ``benchmarks/recurrence.py`` measures
 ``data/recurrence.json``.
"""

from __future__ import annotations

import functools
import json
from importlib import resources
from typing import Any

from clearhead.explain.course.packed import unpacked

SHOWN = 10  # tokens whose logits can be changed


def real_numbers(name: str) -> dict[str, Any]:
    """The numbers that a figure names: "dates", "recurrence", or a part of SmolLM2's."""
    if name == "dates":
        return _dates()
    if name == "recurrence":
        return _file("recurrence.json")
    found: dict[str, Any] = _file("smollm2.json")[name]
    if name == "next_token":
        logits = unpacked(found["logits"])
        found = found | {"first": [float(logits[id]) for id in found["ids"][:SHOWN]]}
    return found


@functools.cache
def _dates() -> dict[str, Any]:
    from clearhead.checkpoints.load import load
    from clearhead.explain.course.weights import encoder_decoder_weights

    return encoder_decoder_weights(load("dates"))


@functools.cache
def _file(name: str) -> dict[str, Any]:
    place = resources.files("clearhead.views.course").joinpath("data", name)
    found: dict[str, Any] = json.loads(place.read_text(encoding="utf-8"))
    return found
