"""Which word and which head to show when nobody chose: the telling ones, not the sinks.

What a head gives from word i to word j is telling as far as it is strong, and more than j gets from
other words in that head anyway:

    telling(i, j) = weight(i, j) · (weight(i, j) − usual(j))        at least 0
    usual(j)      = the median of what words that are not beside j give to it in that head

A sink gets its weight from everybody, so nothing is left of it. Nothing counts where j is hidden
(the first or a special token), punctuation, the word itself or its direct neighbour; in
cross-attention, where i and j are words of different texts, there are no neighbours.

A source is as telling as its five most telling heads together (one head may err; several heads
rarely agree by chance). So:

- of a word, the most telling source is shown, in the head that gives most to it in this sense;
- the word, unless it is chosen: the third-person pronoun (English) whose source is most telling, as
  a pronoun asks whom it stands for; if there is none, the word whose source is most telling.

In a long text, 64 words spread evenly stand for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from clearhead.explain.marks import says_something
from clearhead.explain.pictures import Mark

PRONOUNS = frozenset(
    {"he", "him", "his", "himself", "she", "her", "hers", "herself", "it", "its", "itself"}
    | {"they", "them", "their", "theirs", "themselves"}
)
AGREEING = 5  # heads
SAMPLED = 64  # words

Rows = Sequence[int]


@dataclass(frozen=True)
class Field:
    """Where something can be telling: the axes that a group of layers share."""

    rows: tuple[Mark, ...]
    columns: tuple[Mark, ...]
    hidden: tuple[int, ...]
    own: tuple[int, ...] | None  # the column that each row is; None: they are different texts
    causal: bool = False

    def far(self, rows: Rows) -> Bool[Tensor, "row key"]:
        """The columns that may count for each of these rows."""
        open_columns = torch.tensor([says_something(mark) for mark in self.columns])
        if not bool(open_columns.any()):  # emoji, marks only: then these are what is said
            open_columns = torch.tensor([not mark.special for mark in self.columns])
        open_columns[list(self.hidden)] = False
        if self.own is None:
            return open_columns.expand(len(rows), -1).clone()
        own = torch.tensor([self.own[row] for row in rows])[:, None]
        return ((own - torch.arange(len(self.columns))).abs() > 1) & open_columns

    def before(self, rows: Rows) -> Bool[Tensor, "row key"]:
        """The columns that these rows may look at, as far as the order of words decides it."""
        if not self.causal or self.own is None:
            return torch.ones(len(rows), len(self.columns), dtype=torch.bool)
        own = torch.tensor([self.own[row] for row in rows])[:, None]
        return own >= torch.arange(len(self.columns))

    def asking(self) -> list[int]:
        """Rows that could be chosen: words."""
        found = [place for place, mark in enumerate(self.rows) if says_something(mark)]
        found = found or [place for place, mark in enumerate(self.rows) if not mark.special]
        return found or list(range(len(self.rows)))


TileOf = Callable[[str, Rows], tuple[list[str], Float[Tensor, "head row key"]]]


@dataclass(frozen=True)
class Told:
    """What the rule found: the row, the column, the head, and how telling it is."""

    row: int
    column: int | None  # None: nothing is telling
    head: str
    weight: float
    score: float


@dataclass(frozen=True)
class Agreement:
    """For some rows and all columns: how far heads agree, and the head that says it most."""

    sums: Float[Tensor, "row key"]  # of the five most telling heads
    where: Int[Tensor, "row key"]  # the most telling head, a number of ``heads``
    weight: Float[Tensor, "row key"]  # there
    heads: tuple[str, ...]

    def sources(self, row: int, count: int) -> list[tuple[int, float, str]]:
        """The most telling columns of a row: (column, weight, head), the most telling first."""
        found = self.sums[row].topk(min(count, self.sums.shape[1])).indices.tolist()
        return [
            (column, float(self.weight[row, column]), self.heads[int(self.where[row, column])])
            for column in found
            if float(self.sums[row, column]) > 0
        ]


def most_telling(
    field: Field, layers: Iterable[str], tile_of: TileOf, row: int | None = None
) -> Told:
    """The rule above; ``tile_of(layer, rows)`` gives the names of heads and their weights."""
    layers = list(layers)
    if row is not None:
        return _best(field, layers, tile_of, [row])
    asking = field.asking()
    pronouns = [place for place in asking if field.rows[place].text.casefold() in PRONOUNS]
    told = _best(field, layers, tile_of, spread(pronouns)) if pronouns else None
    if told is None or told.column is None:
        told = _best(field, layers, tile_of, spread(asking))
    return told


def scores_of(
    field: Field, layer: str, tile_of: TileOf, row: int
) -> tuple[list[str], Float[Tensor, "head key"]]:
    """How telling each column is to one row, in each head of a layer."""
    names, _, telling = _layer(field, layer, tile_of, [row])
    return names, telling[:, 0]


def spread(places: Sequence[int]) -> list[int]:
    """At most 64 of them, the first and the last among them."""
    if len(places) <= SAMPLED:
        return list(places)
    step = (len(places) - 1) / (SAMPLED - 1)
    return [places[round(number * step)] for number in range(SAMPLED)]


def agreement(field: Field, layers: Iterable[str], tile_of: TileOf, rows: list[int]) -> Agreement:
    """How telling every column is to these rows, over all heads."""
    shape = (len(rows), len(field.columns))
    agreeing = torch.zeros(0, *shape)
    best, weight = torch.full(shape, -1.0), torch.zeros(shape)
    where = torch.zeros(shape, dtype=torch.long)
    heads: list[str] = []
    for layer in layers:
        names, weights, telling = _layer(field, layer, tile_of, rows)
        joined = torch.cat([agreeing, telling])
        agreeing = joined.topk(min(AGREEING, len(joined)), dim=0).values
        strongest, head = telling.max(dim=0)
        better = strongest > best
        where = torch.where(better, head + len(heads), where)
        weight = torch.where(better, weights.gather(0, head[None])[0], weight)
        best = torch.where(better, strongest, best)
        heads += names
    return Agreement(agreeing.sum(dim=0), where, weight, tuple(heads))


def _best(field: Field, layers: list[str], tile_of: TileOf, rows: list[int]) -> Told:
    found = agreement(field, layers, tile_of, rows)
    place, column = divmod(int(found.sums.argmax()), len(field.columns))
    score = float(found.sums[place, column])
    if score <= 0:
        return Told(rows[-1], None, found.heads[0], 0.0, 0.0)
    head = found.heads[int(found.where[place, column])]
    return Told(rows[place], column, head, float(found.weight[place, column]), score)


def _layer(
    field: Field, layer: str, tile_of: TileOf, rows: list[int]
) -> tuple[list[str], Tensor, Tensor]:
    """Names, weights and tellings of a layer's heads for some rows."""
    others = spread([place for place, mark in enumerate(field.rows) if not mark.special])
    asked = sorted({*rows, *others})
    names, weights = tile_of(layer, asked)
    usual = _usual(weights, field.far(asked) & field.before(asked))
    mine = torch.tensor([asked.index(row) for row in rows])
    weights = weights[:, mine]
    excess = (weights - usual[:, None]).clamp(min=0)
    return names, weights, weights * excess * field.far(rows)


def _usual(
    weights: Float[Tensor, "head row key"], looking: Bool[Tensor, "row key"]
) -> Float[Tensor, "head key"]:
    """What a column gets usually; 0 where only one row looks at it."""
    known = weights.masked_fill(~looking, float("nan"))
    median = known.nanmedian(dim=1).values.nan_to_num(0.0)
    return median * (looking.sum(dim=0) > 1)
