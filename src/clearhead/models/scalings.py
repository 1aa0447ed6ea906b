"""Rotary scalings in a config: read from JSON values, written to them, and checked."""

from __future__ import annotations

import dataclasses
from typing import Any

from clearhead.attention.rotary import (
    FactorScaling,
    LinearScaling,
    Llama3Scaling,
    RotaryScaling,
    YarnScaling,
)
from clearhead.errors import ConfigError
from clearhead.models.field_types import type_mismatch

SCALINGS: dict[str, type[Any]] = {
    "linear": LinearScaling,
    "llama3": Llama3Scaling,
    "yarn": YarnScaling,
    "factors": FactorScaling,
}


def scaling_of(given: Any) -> RotaryScaling:
    """The scaling from plain JSON values."""
    if not isinstance(given, dict) or given.get("kind") not in SCALINGS:
        raise ConfigError(
            f"rotary_scaling must be an object with a kind of {', '.join(SCALINGS)}; got {given!r}."
        )
    fields = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in given.items()
        if name != "kind"
    }
    try:
        made: RotaryScaling = SCALINGS[given["kind"]](**fields)
    except TypeError as error:
        raise ConfigError(f"rotary_scaling: {error}.") from None
    return made


def scaling_fields(scaling: RotaryScaling) -> dict[str, Any]:
    """The scaling as plain JSON values."""
    kind = next(name for name, made in SCALINGS.items() if isinstance(scaling, made))
    return {"kind": kind, **dataclasses.asdict(scaling)}


def check_scaling(scaling: RotaryScaling, *, pairs: int) -> None:
    """Refuse factors and lengths that are not numbers above 0: they divide."""
    for field in dataclasses.fields(scaling):
        value = getattr(scaling, field.name)
        for number in value if isinstance(value, tuple) else (value,):
            if (
                number is not None
                and (type_mismatch(number, float) or number <= 0)
                and (not isinstance(number, bool))
            ):
                raise ConfigError(
                    f"rotary_scaling: {field.name} must be a number above 0; got {number!r}."
                )
    if isinstance(scaling, FactorScaling) and len(scaling.factors) != pairs:
        raise ConfigError(
            f"rotary_scaling: wanted a factor for each of {pairs} pairs; got "
            f"{len(scaling.factors)}."
        )
    if isinstance(scaling, Llama3Scaling) and not (
        scaling.low_frequency_factor < scaling.high_frequency_factor
    ):
        raise ConfigError(
            "rotary_scaling: low_frequency_factor must be below high_frequency_factor; got "
            f"{scaling.low_frequency_factor} and {scaling.high_frequency_factor}."
        )
