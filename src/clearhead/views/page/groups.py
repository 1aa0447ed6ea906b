"""Layers of a look by their axes, and the strongest weights of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import UInt16
from torch import Tensor
from torch.nn.functional import adaptive_max_pool1d, pad

from clearhead.errors import InputError
from clearhead.explain.look import Look
from clearhead.explain.mark_weights import weights_between
from clearhead.explain.marks import hidden_columns
from clearhead.explain.pictures import Aids, Mark
from clearhead.trace.head_view import HeadView
from clearhead.views.page.axes import mark_band, token_band
from clearhead.views.page.strongest import Strongest, by_head, in_units, joined, strongest

LONGEST = 65_536  # words: columns are counted in 16 bits
TILE = 4_000_000  # weights that are computed at once
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
    band: dict[str, list[int]] | None  # the run of columns that each row sees; None: no runs


@dataclass
class Group:
    """Layers with the same axes, and the weights of all of their heads together."""

    letter: str
    layers: list[Layer]
    largest: Strongest | None = None
    total: Strongest | None = None  # sums over all heads
    maps: dict[str, Tensor] = field(default_factory=dict)  # (head, row, column), small

    @property
    def heads(self) -> list[str]:
        """The heads of all layers."""
        return [name for layer in self.layers for name in layer.heads]


def groups_of(look: Look) -> list[Group]:
    """Layers by their axes, those of the chosen head first."""
    groups: dict[Any, Group] = {}
    bands: dict[Any, dict[str, list[int]]] = {}
    for summary in look.layers:
        rows, columns = look.axes(summary.name)
        if max(len(rows), len(columns)) > LONGEST:
            raise InputError(
                f"a page holds at most {LONGEST:,} words; this text has {len(columns):,}.",
                hint="clearhead map draws a head of any length.",
            )
        view = look.seen[summary.name].of(look.batch)
        heads = [f"{summary.name}H{number}" for number in view.heads]
        # Where the aid is off, the page's toggle hides the columns of the default aid.
        aids = look.aids if look.aids.hide != "nothing" else replace(look.aids, hide=Aids().hide)
        causal = summary.causal and summary.kind == "self"
        hidden = hidden_columns(columns, aids, causal=causal)
        band = _band(view, rows, columns, bands)
        layer = Layer(summary.name, view, heads, rows, columns, hidden, band)
        key = (summary.name[0], len(rows), len(columns), hidden)
        groups.setdefault(key, Group(summary.name[0], [])).layers.append(layer)
    letter = look.shown_layers[0][0]
    return sorted(groups.values(), key=lambda group: group.letter != letter)


def _band(
    view: HeadView, rows: tuple[Mark, ...], columns: tuple[Mark, ...], known: dict[Any, Any]
) -> dict[str, list[int]] | None:
    """The band of a layer; most layers of a model share one, so that it is made once."""
    tokens = token_band(view)
    if tokens is None:
        return None
    key = (id(rows), id(columns), *(side.tobytes() for side in tokens))
    if key not in known:
        known[key] = mark_band(tokens, rows, columns)
    found: dict[str, list[int]] = known[key]
    return found


def group_weights(
    group: Group, look: Look, progress: Callable[[int, int], None] = lambda _done, _all: None
) -> dict[str, Strongest]:
    """The strongest weights of each layer, of its heads pooled, and of all heads together."""
    made = {layer.name: _LayerRows(layer) for layer in group.layers}
    largest, totals = [], []
    first = group.layers[0]
    ends = _ends(group)
    group.maps = {layer.name: _no_map(layer) for layer in group.layers}
    for run in _row_runs(first):
        rows = range(len(first.rows))[run]
        # Nobody computes what the mask forbids: in a causal model half of all weights.
        whole = _Pooled(len(rows), max(1, *ends[run]))
        for number, layer in enumerate(group.layers):
            progress(rows.start * len(made) + number * len(rows), len(first.rows) * len(made))
            seen, hidden = layer.columns[: whole.columns], _below(layer.hidden, whole.columns)
            weights = _weights(look, layer, rows, seen)
            made[layer.name].add(weights, hidden)
            whole.add(weights, hidden)
            if hidden:
                weights[:, :, list(hidden)] = 0.0
            _pool_into(group.maps[layer.name], weights, rows, layer)
        largest.append(whole.largest())
        totals.append(whole.total())
    group.largest, group.total = joined(largest), joined(totals)
    return {name: rows for one in made.values() for name, rows in one.by_name().items()}


def _weights(look: Look, layer: Layer, rows: range, seen: tuple[Mark, ...]) -> Tensor:
    """The weights of some rows on the first columns; those of a short text are known already."""
    if look.aids.measure == "weight" and look.is_short(layer.name):
        return look.weights_of(layer.name, rows)[1][..., : len(seen)].clone()
    marks = layer.rows[rows.start : rows.stop]
    return weights_between(layer.view, marks, seen, look.aids.measure, limit=None)


class _Pooled:
    """Heads as one, in some rows: their largest weight and its head, and their sum."""

    def __init__(self, rows: int, columns: int) -> None:
        self.columns, self._count = columns, 0
        self._most, self._sum = torch.full((rows, columns), -1.0), torch.zeros(rows, columns)
        self._best = torch.zeros(rows, columns, dtype=torch.int32)
        self._hidden = torch.zeros(rows)

    def add(self, weights: Tensor, hidden: tuple[int, ...]) -> None:
        self._sum += weights.sum(dim=0)
        self._hidden += weights[:, :, list(hidden)].sum(dim=(0, 2))
        for head in weights:
            self._best.masked_fill_(head > self._most, self._count)
            torch.maximum(self._most, head, out=self._most)
            self._count += 1

    def largest(self) -> Strongest:
        # Of the largest of many heads nothing adds up, so nothing can be missing either.
        found = strongest(self._most, (), self._best.long())
        return replace(found, hidden=self._mass(), totals=np.zeros(len(found.hidden)))

    def total(self) -> Strongest:
        return replace(strongest(self._sum, (), exact=True), hidden=self._mass())

    def _mass(self) -> UInt16[np.ndarray, " row"]:
        """On hidden columns, the mean over heads."""
        return in_units(self._hidden / self._count).clip(max=65535).astype(np.uint16)


class _LayerRows:
    """The rows of one layer: of each head, and of its heads as one."""

    def __init__(self, layer: Layer) -> None:
        self._layer = layer
        self._heads: list[Strongest] = []
        self._largest: list[Strongest] = []
        self._total: list[Strongest] = []

    def add(self, weights: Tensor, hidden: tuple[int, ...]) -> None:
        self._heads.append(strongest(weights.flatten(0, 1), hidden))
        if len(weights) > 1:
            pooled = _Pooled(*weights.shape[1:])
            pooled.add(weights, hidden)
            self._largest.append(pooled.largest())
            self._total.append(pooled.total())

    def by_name(self) -> dict[str, Strongest]:
        name = self._layer.name
        rows = {name: by_head(self._heads, len(self._layer.heads))}
        if self._largest:
            rows |= {f"{name}-max": joined(self._largest), f"{name}-sum": joined(self._total)}
        return rows


def union_band(group: Group) -> dict[str, list[int]] | None:
    """The columns that some layer of the group lets each row see; None where they are no run."""
    bands = [layer.band for layer in group.layers]
    low, high = bands[0]["low"] if bands[0] else [], bands[0]["high"] if bands[0] else []
    for band in bands:
        if band is None or any(
            a[0] > b[1] or b[0] > a[1]
            for a, b in zip(
                zip(low, high, strict=True),
                zip(band["low"], band["high"], strict=True),
                strict=True,
            )
        ):
            return None
        low, high = list(map(min, low, band["low"])), list(map(max, high, band["high"]))
    return {"low": low, "high": high}


def _ends(group: Group) -> list[int]:
    """For each row one past the last column that some layer lets it see."""
    first = group.layers[0]
    ends = [0] * len(first.rows)
    for layer in group.layers:
        if layer.band is None:
            return [len(first.columns)] * len(first.rows)
        ends = list(map(max, ends, layer.band["high"]))
    return ends


def _below(places: tuple[int, ...], end: int) -> tuple[int, ...]:
    return tuple(place for place in places if place < end)


def _no_map(layer: Layer) -> Tensor:
    cells = (min(GALLERY_SIZE, len(layer.rows)), min(GALLERY_SIZE, len(layer.columns)))
    return torch.zeros(len(layer.heads), *cells)


def _pool_into(small: Tensor, weights: Tensor, rows: range, layer: Layer) -> None:
    """The largest weight in each cell of the small maps, for some of the layer's rows."""
    whole = pad(weights, (0, len(layer.columns) - weights.shape[2]))
    if small.shape[1:] == (len(layer.rows), len(layer.columns)):  # a cell for each weight
        part = small[:, rows.start : rows.stop]
        torch.maximum(part, whole, out=part)
        return
    columns = adaptive_max_pool1d(whole, small.shape[2])
    cells = np.array([row * small.shape[1] // len(layer.rows) for row in rows])
    first, starts = np.unique(cells, return_index=True)  # rows of one cell follow on each other
    largest = torch.from_numpy(np.maximum.reduceat(columns.numpy(), starts, axis=1))
    part = small[:, first[0] : first[-1] + 1]
    torch.maximum(part, largest, out=part)


def _row_runs(layer: Layer) -> Iterator[slice]:
    tokens = sum(len(mark.tokens) for mark in layer.columns)
    step = max(1, TILE // max(1, tokens * len(layer.heads)))
    for start in range(0, len(layer.rows), step):
        yield slice(start, start + step)
