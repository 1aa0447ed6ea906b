"""The difference of two looks: two texts, two heads, two models, two checkpoints.

Words are aligned by their texts, as ``diff`` aligns the lines of files. Words in the same place
that differ (kids, lions) are aligned with each other. The distance of two rows is their total
variation distance, ½ Σ |before − after|: 0 if they are the same, 1 if they have nothing in common.
Weight on a word that the other text does not have counts as changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

import torch
from jaxtyping import Float
from torch import Tensor

from clearhead.errors import InputError
from clearhead.explain.look import Look
from clearhead.explain.pictures import HEADLINE, HeadPicture, Mark, shown_number
from clearhead.explain.salience import SAMPLED, evenly_spaced

STRONGEST = 12  # changes that are listed
DRAWN = 40  # words of a text whose maps stand side by side
MAPS = 8  # heads whose maps stand side by side

Pairs = list[tuple[int, int]]
HeadMaps = tuple[HeadPicture, HeadPicture]  # before, after


@dataclass(frozen=True)
class HeadChange:
    """The change of one head: the mean distance of its aligned rows."""

    before: str
    after: str
    distance: float


@dataclass(frozen=True)
class WordChange:
    """The change of one word's row: the mean over heads, and the head with the largest."""

    before: Mark
    after: Mark
    distance: float
    head: str


@dataclass(frozen=True)
class CellChange:
    """The change of one weight."""

    head: str
    row: Mark
    column: Mark | None  # None: only the other text has this word
    other_row: Mark
    other_column: Mark | None
    before: float  # 0 where there is no such word
    after: float

    @property
    def column_text(self) -> str:
        """The word that is looked at; one that only one of the texts has says so."""
        if self.column is None:
            return "" if self.other_column is None else f"{self.other_column.text} (new)"
        if self.other_column is None:
            return f"{self.column.text} (gone)"
        same = self.column.text == self.other_column.text
        return self.column.text if same else f"{self.column.text}/{self.other_column.text}"


@dataclass(frozen=True)
class Difference:
    """All changes, the largest first; ``gone`` and ``new`` are words without a partner."""

    before: str
    after: str
    heads: tuple[HeadChange, ...]
    words: tuple[WordChange, ...]
    changes: tuple[CellChange, ...]
    gone: tuple[str, ...]
    new: tuple[str, ...]
    notes: tuple[str, ...]
    maps: tuple[HeadMaps, ...] = ()  # of the most changed heads
    models: tuple[str, str] = ("", "")
    rows: tuple[tuple[int, int], ...] = ()  # places of words that are aligned
    columns: tuple[tuple[int, int], ...] = ()

    @property
    def pictures(self) -> HeadMaps | None:
        """The head of the largest change, on both sides; None for long texts."""
        return self.maps[0] if self.maps else None


@dataclass(frozen=True)
class Side:
    """One of the two sides: axes, hidden columns, and the weights of heads."""

    name: str
    rows: tuple[Mark, ...]
    columns: tuple[Mark, ...]
    hidden: tuple[int, ...]
    look: Look | None = None
    picture: HeadPicture | None = None

    @classmethod
    def of(cls, given: object, name: str) -> Side:
        """Make a side from a look with all its heads, or from the picture of one head."""
        if isinstance(given, HeadPicture):
            return cls(name or given.head, given.rows, given.columns, given.hidden, picture=given)
        if not isinstance(given, Look):
            raise InputError(f"diff compares looks or heads; got {type(given).__name__}.")
        return cls(name or given.text, given.rows, given.columns, given.hidden, look=given)

    @property
    def model(self) -> str:
        """The name of the model; "" where it is not known."""
        found = self.look.name if self.look is not None else ""
        return found or (self.picture.model if self.picture is not None else "")

    def layers(self) -> list[str]:
        """Return the layers whose heads are compared; "" for a picture."""
        return [""] if self.look is None else self.look.shown_layers

    def weights(
        self, layer: str, rows: Sequence[int]
    ) -> tuple[list[str], Float[Tensor, "head row key"]]:
        """Return names and weights of the heads of a layer at some rows."""
        if self.look is not None:
            return self.look.weights_of(layer, rows)
        assert self.picture is not None
        weights = torch.from_numpy(self.picture.weights[list(rows)])
        if self.picture.pooled is not None:  # such rows add up to anything
            weights = weights / weights.sum(dim=1, keepdim=True).clamp(min=1e-30)
        return [self.picture.head], weights[None]

    @property
    def heads(self) -> dict[str, int]:
        """How many heads each layer has; of a picture it is one."""
        if self.look is None:
            return {"": 1}
        known = {layer.name: layer.heads for layer in self.look.layers}
        return {layer: known.get(layer, 1) for layer in self.layers()}


def make_difference(
    before: object,
    after: object,
    *,
    names: tuple[str, str] = ("", ""),
) -> Difference:
    """Compare two looks head by head, or two pictures of a head."""
    a, b = Side.of(before, names[0]), Side.of(after, names[1])
    if (a.look is None) != (b.look is None):
        raise InputError("diff compares two looks, or two heads; not a look with a head.")
    models, pooled = (a.model, b.model), _differently_built(a, b)
    if pooled:
        a, b = (replace(side, look=None, picture=_all_heads(side)) for side in (a, b))
    rows, columns = aligned(a.rows, b.rows), aligned(a.columns, b.columns)
    if not rows or not columns:
        raise InputError("the two have no word in common: there is nothing to align.")
    taken = [rows[place] for place in evenly_spaced(range(len(rows)))]
    found = _Changes(a, b, taken, columns)
    layers = [layer for layer in a.layers() if layer in b.layers()]
    if not layers:
        raise InputError("the two have no layer of the same name: nothing can be compared.")
    for layer in layers:
        found.add(layer)
    paired = {place for _, place in rows}, {place for place, _ in rows}
    return Difference(
        before=a.name,
        after=b.name,
        heads=found.heads(),
        words=found.words(),
        changes=found.changes(),
        gone=tuple(mark.text for place, mark in enumerate(a.rows) if place not in paired[1]),
        new=tuple(mark.text for place, mark in enumerate(b.rows) if place not in paired[0]),
        notes=tuple(_notes(a, b, rows, layers, pooled)),
        maps=tuple(_maps(a, b, found)),
        models=models,
        rows=tuple(rows),
        columns=tuple(columns),
    )


def _maps(a: Side, b: Side, found: _Changes) -> Iterator[HeadMaps]:
    """The heads with the largest changes, on both sides; none if the texts are too long to draw."""
    if max(len(a.rows), len(a.columns), len(b.rows), len(b.columns)) > DRAWN:
        return
    if a.picture is not None and b.picture is not None:
        yield a.picture, b.picture
        return
    names = [one.head for one in found.changes()] + [one.before for one in found.heads()]
    for name in list(dict.fromkeys(names))[:MAPS]:
        assert a.look is not None and b.look is not None  # a side is a look or a picture
        yield a.look.head(name), b.look.head(name)


def _differently_built(a: Side, b: Side) -> bool:
    """True for two models with other layers or heads: the same name means nothing there."""
    if a.look is None or b.look is None:
        return False
    return a.look.name != b.look.name and a.heads != b.heads


def _all_heads(side: Side) -> HeadPicture:
    assert side.look is not None
    return side.look.with_aids(pool="mean").head("all")


def aligned(before: Sequence[Mark], after: Sequence[Mark]) -> Pairs:
    """Pair the places of the same words, and of words that replace each other."""
    matcher = SequenceMatcher(
        None, [mark.text for mark in before], [mark.text for mark in after], autojunk=False
    )
    pairs: Pairs = []
    for kind, start, stop, other, other_stop in matcher.get_opcodes():
        if kind == "equal" or (kind == "replace" and stop - start == other_stop - other):
            pairs += zip(range(start, stop), range(other, other_stop), strict=True)
    return pairs


class _Changes:
    """Collects distances and the largest changes, layer by layer."""

    def __init__(self, a: Side, b: Side, rows: Pairs, columns: Pairs) -> None:
        self._a, self._b, self._rows, self._columns = a, b, rows, columns
        self._heads: list[HeadChange] = []
        self._distances: list[Tensor] = []  # (head, row) of each layer
        self._names: list[str] = []
        self._cells: list[CellChange] = []
        paired = {first for first, _ in columns}, {second for _, second in columns}
        self._pairs: list[tuple[int | None, int | None]] = [*columns]
        self._pairs += [(place, None) for place in range(len(a.columns)) if place not in paired[0]]
        self._pairs += [(None, place) for place in range(len(b.columns)) if place not in paired[1]]
        self._first = [first or 0 for first, _ in self._pairs]
        self._second = [second or 0 for _, second in self._pairs]
        self._known = [
            torch.tensor([place is not None for place in places])
            for places in zip(*self._pairs, strict=True)
        ]
        self._open = torch.tensor(
            [first not in a.hidden and second not in b.hidden for first, second in self._pairs]
        )

    def add(self, layer: str) -> None:
        """Compare the heads of one layer."""
        names, before = self._a.weights(layer, [row for row, _ in self._rows])
        others, after = self._b.weights(layer, [row for _, row in self._rows])
        count = min(len(names), len(others))
        before, after = before[:count], after[:count]
        left = before[:, :, [column for column, _ in self._columns]]
        right = after[:, :, [column for _, column in self._columns]]
        apart = (left - right).abs().sum(dim=2)
        alone = (before.sum(dim=2) - left.sum(dim=2)) + (after.sum(dim=2) - right.sum(dim=2))
        distance = (apart + alone) / 2  # (head, row)
        self._distances.append(distance)
        self._names += names[:count]
        self._heads += [
            HeadChange(name, other, shown_number(number))
            for name, other, number in zip(
                names[:count], others[:count], distance.mean(dim=1).tolist(), strict=True
            )
        ]
        self._cells = self._strongest(names, before, after)

    def heads(self) -> tuple[HeadChange, ...]:
        """Return the heads, the most changed first."""
        return tuple(sorted(self._heads, key=lambda one: -one.distance))

    def words(self) -> tuple[WordChange, ...]:
        """Return the words, the most changed first."""
        distances = torch.cat(self._distances)  # (head, row)
        means, best = distances.mean(dim=0).tolist(), distances.argmax(dim=0).tolist()
        found = [
            WordChange(
                self._a.rows[first], self._b.rows[second], shown_number(means[place]),
                self._names[best[place]],
            )
            for place, (first, second) in enumerate(self._rows)
        ]  # fmt: skip
        return tuple(sorted(found, key=lambda one: -one.distance))

    def changes(self) -> tuple[CellChange, ...]:
        """Return the weights that changed most."""
        return tuple(self._cells)

    def _strongest(self, names: list[str], before: Tensor, after: Tensor) -> list[CellChange]:
        """The largest changes so far, and those of some more heads."""
        left, right = before[:, :, self._first], after[:, :, self._second]
        left, right = left * self._known[0], right * self._known[1]  # 0 where a word is missing
        change = ((left - right).abs() * self._open).flatten()
        best = change.topk(min(STRONGEST, change.numel())).indices.tolist()
        width = len(self._pairs)
        found = list(self._cells)
        for place in best:
            if not float(change[place]):
                continue
            head, rest = divmod(place, len(self._rows) * width)
            row, number = divmod(rest, width)
            (first, second), (column, other) = self._rows[row], self._pairs[number]
            found.append(
                CellChange(
                    names[head], self._a.rows[first],
                    None if column is None else self._a.columns[column],
                    self._b.rows[second],
                    None if other is None else self._b.columns[other],
                    shown_number(float(left[head, row, number])),
                    shown_number(float(right[head, row, number])),
                )
            )  # fmt: skip
        found.sort(key=lambda one: -abs(one.before - one.after))
        return found[:STRONGEST]


def _notes(a: Side, b: Side, rows: Pairs, layers: list[str], pooled: bool) -> Iterator[str]:
    if pooled:
        yield (
            "The two models have different layers or heads, so that a head of one has no "
            "counterpart in the other: the means over all heads are compared."
        )
    if any(side.picture is not None and side.picture.pooled for side in (a, b)):
        yield "Rows of pooled heads are divided by their sums before they are compared."
    if len(rows) > SAMPLED:
        yield f"{SAMPLED} of {len(rows)} aligned words were compared, evenly spaced."
    left = len(a.layers()) - len(layers) + len(b.layers()) - len(layers)
    if left:
        yield f"{left} layers have no counterpart of the same name and were left out."
    alone = sum(abs(a.heads.get(layer, 0) - b.heads.get(layer, 0)) for layer in layers)
    if alone:
        yield f"{alone} heads have no counterpart of the same number and were left out."
    if a.hidden or b.hidden:
        yield "Attention to the first and to special tokens counts in distances, and is not listed."
    for side in (a, b):
        if side.look is not None and side.look.seen.missed:
            yield f"{side.name}: {side.look.seen.missed}"
    yield HEADLINE
