"""Pictures as plain data: of a head, of a word, of all heads at once. Renderers draw them.

Every number is rounded once, by ``shown_number``, so all renderers show the same number.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from jaxtyping import Bool, Float

DECIMALS = 4
LEAST = 0.005  # a weight that would be shown as 0.00 is not named
LOG_DECADES = 4  # of logarithmic colours: a ten-thousandth of the strongest is nothing
HEADLINE = "Attention shows where information could come from; by itself it is not an explanation."

Hide: TypeAlias = Literal["first and special", "special", "nothing"]
Colour: TypeAlias = Literal["linear", "log"]
Pool: TypeAlias = Literal["max", "mean", "sum"]
Measure: TypeAlias = Literal["weight", "weight·‖v‖"]


def shown_number(number: float) -> float:
    """Round a number as all renderers show it: to four decimals."""
    return float(np.round(float(number), DECIMALS))


def shown_numbers(numbers: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """``shown_number`` of every entry, in float64: the decimals are what they say."""
    return np.round(numbers.astype(np.float64), DECIMALS)


def two_decimals(number: float) -> str:
    """A shown number with two decimals; halves go up, as in the scripts of the page.

    >>> two_decimals(0.125), two_decimals(0.1249)
    ('0.13', '0.12')
    """
    hundredths = (round(number * 10**DECIMALS) + 50) // 100
    return f"{hundredths // 100}.{hundredths % 100:02d}"


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
    hidden_mass: Float[np.ndarray, " query"]  # on hidden columns; of several heads their mean
    aids: Aids
    notes: tuple[str, ...]  # stated aids and caveats, as sentences
    pooled: Pool | None = None  # how several heads became one; None: it is one head
    per_cell: int = 1  # tokens a side that share a cell, in the map of a long text
    text: str = ""  # the text that was read
    model: str = ""  # the name of the model
    # A ZoomedMap: every single weight of the map of a long text, on demand; no part of the tables.
    zoom: object = field(default=None, repr=False)

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
    weight: float  # the number that is shown: of one head, or pooled; in the measure of the aids
    value_weight: float | None  # weight·‖v‖ relative to the row's sum, if v was kept
    head: str  # the one head, or that in which it is strongest


@dataclass(frozen=True, eq=False)
class WordPicture:
    """The words that one word attends to: over all heads, or in one."""

    row: int
    mark: Mark
    marks: tuple[Mark, ...]  # all columns, for the coloured sentence and the arcs
    strengths: Float[np.ndarray, " key"]  # the weights that colour the sentence
    sources: tuple[Source, ...]  # strongest first
    beyond: tuple[float, ...]  # [n]: what all sources but the first n have together
    head: str | None  # the one head; None: over several
    own: int | None  # the column of the word itself; None in cross-attention
    hidden: tuple[int, ...]
    hidden_mass: float  # on hidden columns; of several heads their mean
    aids: Aids
    notes: tuple[str, ...]
    pooled: str = ""  # the heads together: "mean of all 270 heads"; "" for one head
    model: str = ""  # the name of the model

    def __repr__(self) -> str:
        strongest = ", ".join(f"{one.mark.text!r} {one.weight:g}" for one in self.sources[:3])
        where = "all heads" if self.head is None else self.head
        return f"WordPicture({self.mark.text!r} in {where}: {strongest or 'no source'})"


@dataclass(frozen=True)
class Headline:
    """What a word looks at most, and what rests on hidden words: one rule for every renderer.

    Of the words that are shown the strongest is named, the word itself included. If the hidden
    words have more than it, that comes first.
    """

    word: str
    rests: float | None  # on hidden words, if more than on the source; of several heads their mean
    hidden: str  # the hidden words
    source: str | None  # the strongest word that is shown; None: nothing
    itself: bool  # the source is the word itself
    weight: float
    head: str  # the one head, or that in which the largest weight is; "" for a mean or a sum


def headline_of(picture: WordPicture) -> Headline:
    """The headline of a word's picture."""
    best = next((one for one in picture.sources if one.weight >= LEAST), None)
    weight = 0.0 if best is None else best.weight
    rests = picture.hidden_mass if picture.hidden_mass > max(weight, LEAST) else None
    names = dict.fromkeys(picture.marks[place].text for place in picture.hidden)
    named = picture.head is not None or picture.aids.pool == "max"
    return Headline(
        word=picture.mark.text,
        rests=rests,
        hidden=", ".join(list(names)[:3]) + " …" * (len(names) > 3),
        source=None if best is None else best.mark.text,
        itself=best is not None and best.column == picture.own,
        weight=weight,
        head="" if best is None or not named else best.head,
    )


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
