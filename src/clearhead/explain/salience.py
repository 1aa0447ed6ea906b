"""Salience: which word and which head to show first, if the user chose none.

A weight from word i to word j is salient if it is large, and larger than the weight that other
words give to j in the same head:

    salience(i, j) = weight(i, j) · (weight(i, j) − usual(j))        at least 0
    usual(j)       = the median of weight(k, j) in that head, over words k that are not beside j

An attention sink gets its weight from every word, so its salience is 0. The salience is also 0
where j is hidden (the first or a special token), punctuation, the word itself or its direct
neighbour. In cross-attention i and j are words of different texts, so there are no neighbours.

The salience of a source is the sum over its five most salient heads (one head may err; several
heads rarely agree by chance). The rule:

- For a word, the most salient source is shown, in the head where it is most salient.
- The word, if none was chosen, is the third-person pronoun (English) whose source is most salient:
  a reader wants to know whom it stands for. Without a pronoun, it is the word whose source is most
  salient.

In a long text, 64 evenly spaced words stand for all of them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from clearhead.explain.marks import is_word
from clearhead.explain.pictures import Mark

PRONOUNS = frozenset(
    {"he", "him", "his", "himself", "she", "her", "hers", "herself", "it", "its", "itself"}
    | {"they", "them", "their", "theirs", "themselves"}
)
AGREEING = 5  # heads
SAMPLED = 64  # words

Rows = Sequence[int]


@dataclass(frozen=True)
class SalienceAxes:
    """The axes that a group of layers share, and the columns that can be salient."""

    rows: tuple[Mark, ...]
    columns: tuple[Mark, ...]
    hidden: tuple[int, ...]  # columns: the first and special tokens
    own: tuple[int, ...] | None  # the column that each row is; None: they are different texts
    causal: bool = False

    def countable(self, rows: Rows) -> Bool[Tensor, "row key"]:
        """True for the columns that can be salient to each of these rows."""
        if self.own is None:
            return self._open.expand(len(rows), -1).clone()
        own = torch.tensor([self.own[row] for row in rows])[:, None]
        return ((own - torch.arange(len(self.columns))).abs() > 1) & self._open

    @functools.cached_property
    def _open(self) -> Bool[Tensor, " key"]:
        """True for the columns that can be salient to some row."""
        open_columns = torch.tensor([is_word(mark) for mark in self.columns])
        if not bool(open_columns.any()):  # only emoji or punctuation: then these count
            open_columns = torch.tensor([not mark.special for mark in self.columns])
        open_columns[list(self.hidden)] = False
        return open_columns

    def visible(self, rows: Rows) -> Bool[Tensor, "row key"]:
        """True for the columns that the causal order lets these rows attend to."""
        if not self.causal or self.own is None:
            return torch.ones(len(rows), len(self.columns), dtype=torch.bool)
        own = torch.tensor([self.own[row] for row in rows])[:, None]
        return own >= torch.arange(len(self.columns))

    def query_rows(self) -> list[int]:
        """The rows that can be chosen: words, not punctuation or special tokens."""
        found = [place for place, mark in enumerate(self.rows) if is_word(mark)]
        found = found or [place for place, mark in enumerate(self.rows) if not mark.special]
        return found or list(range(len(self.rows)))


WeightsOf = Callable[[str, Rows], tuple[list[str], Float[Tensor, "head row key"]]]


@dataclass(frozen=True)
class Salient:
    """The result of the rule: the row, the column, the head, and how salient it is."""

    row: int
    column: int | None  # None: nothing is salient
    head: str
    weight: float
    score: float


@dataclass(frozen=True)
class Agreement:
    """Salience of all columns to some rows over all heads, and the most salient head of each."""

    sums: Float[Tensor, "row key"]  # of the five most salient heads
    where: Int[Tensor, "row key"]  # the most salient head, a number of ``heads``
    weight: Float[Tensor, "row key"]  # there
    heads: tuple[str, ...]

    def sources(self, row: int, count: int) -> list[tuple[int, float, str]]:
        """The most salient columns of a row: (column, weight, head), the most salient first."""
        found = self.sums[row].topk(min(count, self.sums.shape[1])).indices.tolist()
        return [
            (column, float(self.weight[row, column]), self.heads[int(self.where[row, column])])
            for column in found
            if float(self.sums[row, column]) > 0
        ]


def most_salient(
    axes: SalienceAxes, layers: Iterable[str], weights_of: WeightsOf, row: int | None = None
) -> Salient:
    """Apply the rule; ``weights_of(layer, rows)`` returns the names of heads and their weights."""
    layers = list(layers)
    if row is not None:
        return _best(axes, layers, weights_of, [row])
    queries = axes.query_rows()
    pronouns = [place for place in queries if axes.rows[place].text.casefold() in PRONOUNS]
    salient = _best(axes, layers, weights_of, evenly_spaced(pronouns)) if pronouns else None
    if salient is None or salient.column is None:
        salient = _best(axes, layers, weights_of, evenly_spaced(queries))
    return salient


def scores_of(
    axes: SalienceAxes, layer: str, weights_of: WeightsOf, row: int
) -> tuple[list[str], Float[Tensor, "head key"]]:
    """Return the salience of each column to one row, in each head of a layer."""
    names, _, salience = _layer(axes, layer, weights_of, [row])
    return names, salience[:, 0]


def evenly_spaced(places: Sequence[int]) -> list[int]:
    """At most 64 evenly spaced places, the first and the last among them."""
    if len(places) <= SAMPLED:
        return list(places)
    step = (len(places) - 1) / (SAMPLED - 1)
    return [places[round(number * step)] for number in range(SAMPLED)]


def agreement(
    axes: SalienceAxes, layers: Iterable[str], weights_of: WeightsOf, rows: list[int]
) -> Agreement:
    """Return how salient every column is to these rows, over all heads."""
    shape = (len(rows), len(axes.columns))
    agreeing = torch.zeros(0, *shape)
    best, weight = torch.full(shape, -1.0), torch.zeros(shape)
    where = torch.zeros(shape, dtype=torch.long)
    heads: list[str] = []
    for layer in layers:
        names, weights, salience = _layer(axes, layer, weights_of, rows)
        joined = torch.cat([agreeing, salience])
        agreeing = joined.topk(min(AGREEING, len(joined)), dim=0).values
        strongest, head = salience.max(dim=0)
        better = strongest > best
        where = torch.where(better, head + len(heads), where)
        weight = torch.where(better, weights.gather(0, head[None])[0], weight)
        best = torch.where(better, strongest, best)
        heads += names
    return Agreement(agreeing.sum(dim=0), where, weight, tuple(heads))


def _best(axes: SalienceAxes, layers: list[str], weights_of: WeightsOf, rows: list[int]) -> Salient:
    found = agreement(axes, layers, weights_of, rows)
    place, column = divmod(int(found.sums.argmax()), len(axes.columns))
    score = float(found.sums[place, column])
    if score <= 0:
        return Salient(rows[-1], None, found.heads[0], 0.0, 0.0)
    head = found.heads[int(found.where[place, column])]
    return Salient(rows[place], column, head, float(found.weight[place, column]), score)


def _layer(
    axes: SalienceAxes, layer: str, weights_of: WeightsOf, rows: list[int]
) -> tuple[list[str], Tensor, Tensor]:
    """Names, weights and saliences of a layer's heads for some rows."""
    others = evenly_spaced([place for place, mark in enumerate(axes.rows) if not mark.special])
    taken = sorted({*rows, *others})
    names, weights = weights_of(layer, taken)
    usual = _usual(weights, axes.countable(taken) & axes.visible(taken))
    mine = torch.tensor([taken.index(row) for row in rows])
    weights = weights[:, mine]
    excess = (weights - usual[:, None]).clamp(min=0)
    return names, weights, weights * excess * axes.countable(rows)


def _usual(
    weights: Float[Tensor, "head row key"], seen_by: Bool[Tensor, "row key"]
) -> Float[Tensor, "head key"]:
    """The usual weight of each column; 0 where only one row attends to it."""
    ordered = weights.masked_fill(~seen_by, float("inf")).sort(dim=1).values
    count = seen_by.sum(dim=0)  # (key): those that are not known stand last
    middle = [((count - 1).clamp(min=0) // 2), count // 2]
    most = ordered.shape[1] - 1
    both = [
        ordered.gather(1, place.clamp(max=most).expand(len(ordered), 1, -1))[:, 0]
        for place in middle
    ]
    return torch.where(count > 1, (both[0] + both[1]) / 2, 0.0)
