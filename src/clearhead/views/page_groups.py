"""Layers of a look by their axes, and the strongest weights of each: what pages are made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import adaptive_max_pool1d

from clearhead.errors import InputError
from clearhead.explain.look import Look
from clearhead.explain.marks import hidden_columns
from clearhead.explain.pictures import Aids, Mark
from clearhead.explain.tiles import tile
from clearhead.trace.head_view import HeadView
from clearhead.views.strongest import Strongest, by_head, joined, strongest

LONGEST = 65_536  # words: columns are counted in 16 bits
TILE = 16_000_000  # weights that are computed at once
GALLERY_SIZE = 24


@dataclass(frozen=True)
class Layer:
    """One layer as the page needs it."""

    name: str
    view: HeadView
    heads: list[str]
    rows: tuple[Mark, ...]
    columns: tuple[Mark, ...]
    hidden: tuple[int, ...]


@dataclass
class Group:
    """Layers with the same axes, and what all of their heads together look at."""

    letter: str
    layers: list[Layer]
    largest: Strongest | None = None
    mean: Strongest | None = None
    maps: dict[str, Tensor] = field(default_factory=dict)  # (head, row, column), small

    @property
    def heads(self) -> list[str]:
        """The heads of all layers."""
        return [name for layer in self.layers for name in layer.heads]


def groups_of(look: Look) -> list[Group]:
    """Layers by their axes, those of the chosen head first."""
    groups: dict[Any, Group] = {}
    for summary in look.layers:
        rows, columns = look.axes(summary.name)
        if max(len(rows), len(columns)) > LONGEST:
            raise InputError(
                f"a page holds at most {LONGEST:,} words; this text has {len(columns):,}.",
                hint="clearhead map draws a head of any length.",
            )
        view = look.seen[summary.name].of(look.batch)
        heads = [f"{summary.name}H{number}" for number in view.heads]
        # What the switch hides where the aid is off is what it would hide by itself.
        aids = look.aids if look.aids.hide != "nothing" else replace(look.aids, hide=Aids().hide)
        causal = summary.causal and summary.kind == "self"
        hidden = hidden_columns(columns, aids, causal=causal)
        layer = Layer(summary.name, view, heads, rows, columns, hidden)
        key = (summary.name[0], len(rows), len(columns), hidden)
        groups.setdefault(key, Group(summary.name[0], [])).layers.append(layer)
    letter = look.chosen_head[0]
    return sorted(groups.values(), key=lambda group: group.letter != letter)


def group_weights(group: Group, look: Look) -> dict[str, Strongest]:
    """The strongest weights of each layer, and of all heads together; small maps on the way."""
    parts: dict[str, list[Strongest]] = {layer.name: [] for layer in group.layers}
    largest, means = [], []
    first = group.layers[0]
    shape = (len(first.rows), len(first.columns))
    group.maps = {layer.name: _no_map(layer) for layer in group.layers}
    for run in _row_runs(first):
        rows = range(len(first.rows))[run]
        most, total = torch.full((len(rows), shape[1]), -1.0), torch.zeros(len(rows), shape[1])
        best, count = torch.zeros(len(rows), shape[1], dtype=torch.int32), 0
        for layer in group.layers:
            marks = layer.rows[run]
            weights = tile(layer.view, marks, layer.columns, look.aids.measure, limit=None)
            parts[layer.name].append(strongest(weights.flatten(0, 1), layer.hidden))
            total += weights.sum(dim=0)
            for head in weights:
                best.masked_fill_(head > most, count)
                torch.maximum(most, head, out=most)
                count += 1
            if layer.hidden:
                weights[:, :, list(layer.hidden)] = 0.0
            _pool_into(group.maps[layer.name], weights, rows, shape[0])
        mean = strongest(total / count, first.hidden)
        # Of the largest of many heads nothing adds up, so nothing can be missing either.
        pooled = strongest(most, (), best.long())
        largest.append(replace(pooled, hidden=mean.hidden, totals=np.zeros(len(rows))))
        means.append(mean)
    group.largest, group.mean = joined(largest), joined(means)
    return {layer.name: by_head(parts[layer.name], len(layer.heads)) for layer in group.layers}


def _no_map(layer: Layer) -> Tensor:
    cells = (min(GALLERY_SIZE, len(layer.rows)), min(GALLERY_SIZE, len(layer.columns)))
    return torch.zeros(len(layer.heads), *cells)


def _pool_into(small: Tensor, weights: Tensor, rows: range, count: int) -> None:
    """The largest weight in each cell of the small maps, for some of ``count`` rows."""
    columns = adaptive_max_pool1d(weights, small.shape[2])
    cells = np.array([row * small.shape[1] // count for row in rows])
    for cell in np.unique(cells).tolist():
        largest = columns[:, torch.from_numpy(cells == cell)].amax(dim=1)
        small[:, cell] = torch.maximum(small[:, cell], largest)


def _row_runs(layer: Layer) -> Iterator[slice]:
    tokens = sum(len(mark.tokens) for mark in layer.columns)
    step = max(1, TILE // max(1, tokens * len(layer.heads)))
    for start in range(0, len(layer.rows), step):
        yield slice(start, start + step)
