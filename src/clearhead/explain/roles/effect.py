"""Effects: how much a model changes without a head, at the cases of its role and elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Way: TypeAlias = Literal["zero", "mean"]
Measure: TypeAlias = Literal["loss", "states"]


@dataclass(frozen=True)
class Change:
    """The mean change at some positions, its standard error, and how many they are."""

    mean: float
    error: float
    positions: int


@dataclass(frozen=True)
class Effect:
    """The effect of ablating one head."""

    head: str
    property: str
    way: Way
    measure: Measure
    at_cases: Change
    elsewhere: Change
