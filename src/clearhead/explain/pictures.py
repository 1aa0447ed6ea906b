"""What there is to see, as plain data: a head, a word, all heads at once. Renderers draw it.

Every number in here is the number that is shown: it went through ``shown_number`` once, so no two
renderers can disagree about it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from jaxtyping import Bool, Float

DECIMALS = 4
HEADLINE = "Attention shows where information could come from; by itself it is not an explanation."

Hide: TypeAlias = Literal["first and special", "special", "nothing"]
Colour: TypeAlias = Literal["linear", "log"]
Pool: TypeAlias = Literal["max", "mean", "sum"]
Measure: TypeAlias = Literal["weight", "weight·‖v‖"]


def shown_number(number: float) -> float:
    """A number as it is shown, wherever it is shown: four decimals."""
    return round(float(number), DECIMALS)


def shown_numbers(numbers: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """``shown_number`` of every entry, as float32."""
    return np.round(numbers.astype(np.float64), DECIMALS).astype(np.float32)


@dataclass(frozen=True)
class Mark:
    """One place on an axis: a word, or a token where words are not merged."""

    text: str  # as a person reads it; a name such as "⟨s⟩" for specials, never ""
    start: int  # characters in the text; start == end if it stands for none of them
    end: int
    special: bool  # a special token, or padding
    tokens: tuple[int, ...]  # the token positions that it merges


@dataclass(frozen=True)
class Aids:
    """Reading aids; every picture says which were on."""

    words: bool = True  # subwords merged: into a word summed, out of it averaged
    hide: Hide = "first and special"
    colour: Colour = "linear"
    pool: Pool = "max"  # over heads, where several are shown as one
    measure: Measure = "weight"


@dataclass(frozen=True, eq=False)
class HeadPicture:
    """One head, or several as one: then ``head`` says so, "max of L16", "mean of all 270 heads"."""

    head: str
    kind: Literal["self", "cross"]
    causal: bool
    rows: tuple[Mark, ...]
    columns: tuple[Mark, ...]
    weights: Float[np.ndarray, "query key"]  # 0 where masked
    visible: Bool[np.ndarray, "query key"]  # False: the mask hid it
    hidden: tuple[int, ...]  # columns that a reading aid hides (first, special)
    hidden_mass: Float[np.ndarray, " query"]  # what stands on hidden columns
    aids: Aids
    notes: tuple[str, ...]  # stated aids and caveats, as sentences


@dataclass(frozen=True)
class Source:
    """One thing that a word looks at."""

    column: int
    mark: Mark
    weight: float
    value_weight: float | None  # weight·‖v‖ relative to the row's sum, if v was kept
    head: str


@dataclass(frozen=True, eq=False)
class WordPicture:
    """Where one word looks: over all heads, or in one."""

    row: int
    mark: Mark
    marks: tuple[Mark, ...]  # all columns, for the coloured sentence and the arcs
    strengths: Float[np.ndarray, " key"]  # what the sentence is coloured by
    sources: tuple[Source, ...]  # strongest first; `head`: in which head it is strongest
    head: str | None  # the one head; None: over all
    hidden: tuple[int, ...]
    hidden_mass: float
    aids: Aids
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Gallery:
    """All layers × heads, each a small map."""

    names: tuple[tuple[str, ...], ...]  # [layer][head]
    maps: Float[np.ndarray, "layer head size size"]  # max-pooled, hidden columns left out
    telling: tuple[tuple[float, ...], ...]  # the score by which a head is chosen
    aids: Aids
    notes: tuple[str, ...]
