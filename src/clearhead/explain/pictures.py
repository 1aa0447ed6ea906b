"""Pictures as plain data: of a head, of a word, of all heads at once. Renderers draw them.

Every number is rounded once, by ``shown_number``, so all renderers show the same number.
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
    """Round a number as all renderers show it: to four decimals."""
    return round(float(number), DECIMALS)


def shown_numbers(numbers: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """``shown_number`` of every entry, as float32."""
    return np.round(numbers.astype(np.float64), DECIMALS).astype(np.float32)


def shortened(text: str, longest: int = 60) -> str:
    """Cut a text for a repr.

    >>> shortened("Students opened their books", 12)
    'Students op…'
    """
    return text if len(text) <= longest else text[: longest - 1] + "…"


@dataclass(frozen=True)
class Mark:
    """One place on an axis, with its label: a word, or a token where words are not merged."""

    text: str  # as a person reads it; a name such as "⟨s⟩" for specials, never ""
    start: int  # characters in the text; start == end if it stands for none of them
    end: int
    special: bool  # a special token, or padding
    tokens: tuple[int, ...]  # the token positions that it merges


@dataclass(frozen=True)
class Aids:
    """Reading aids: options that make a picture easier to read. Its notes name those that are on.

    >>> Aids(pool="mean").hide
    'first and special'
    """

    words: bool = True  # subwords merged: into a word summed, out of it averaged
    hide: Hide = "first and special"
    colour: Colour = "linear"
    pool: Pool = "max"  # over heads, where several are shown as one
    measure: Measure = "weight"


@dataclass(frozen=True, eq=False)
class HeadPicture:
    """The weights of one head, or of several pooled: "max of L16", "mean of all 270 heads"."""

    head: str
    kind: Literal["self", "cross"]
    causal: bool
    rows: tuple[Mark, ...]
    columns: tuple[Mark, ...]
    weights: Float[np.ndarray, "query key"]  # 0 where masked
    visible: Bool[np.ndarray, "query key"]  # False: masked
    hidden: tuple[int, ...]  # columns that a reading aid hides (first, special)
    hidden_mass: Float[np.ndarray, " query"]  # the weight on hidden columns
    aids: Aids
    notes: tuple[str, ...]  # stated aids and caveats, as sentences

    def __repr__(self) -> str:
        return (
            f"HeadPicture({self.head!r}, kind={self.kind!r}, causal={self.causal}, "
            f"{len(self.rows)} rows × {len(self.columns)} columns)"
        )


@dataclass(frozen=True)
class Source:
    """One word that another word attends to."""

    column: int
    mark: Mark
    weight: float
    value_weight: float | None  # weight·‖v‖ relative to the row's sum, if v was kept
    head: str


@dataclass(frozen=True, eq=False)
class WordPicture:
    """The words that one word attends to: over all heads, or in one."""

    row: int
    mark: Mark
    marks: tuple[Mark, ...]  # all columns, for the coloured sentence and the arcs
    strengths: Float[np.ndarray, " key"]  # the weights that colour the sentence
    sources: tuple[Source, ...]  # strongest first; `head`: in which head it is strongest
    head: str | None  # the one head; None: over all
    hidden: tuple[int, ...]
    hidden_mass: float
    aids: Aids
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        strongest = ", ".join(f"{one.mark.text!r} {one.weight:g}" for one in self.sources[:3])
        where = "all heads" if self.head is None else self.head
        return f"WordPicture({self.mark.text!r} in {where}: {strongest or 'no source'})"


@dataclass(frozen=True, eq=False)
class Gallery:
    """All layers × heads, each as a small map."""

    names: tuple[tuple[str, ...], ...]  # [layer][head]
    maps: Float[np.ndarray, "layer head row column"]  # max-pooled, hidden columns left out
    salience: tuple[tuple[float, ...], ...]  # the score by which a head is chosen
    aids: Aids
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        heads = sum(map(len, self.names))
        size = " × ".join(map(str, self.maps.shape[2:]))
        return f"Gallery({len(self.names)} layers, {heads} heads, maps of {size} cells)"
