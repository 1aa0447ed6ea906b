"""The parts of a prediction: heads with their sources, feed-forward layers, embedding, biases."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np
from jaxtyping import Float, Int

from clearhead.explain.pictures import Mark, shortened
from clearhead.explain.why.target import PredictedToken

TOLERANCE = 1e-4  # relative, of the sum of the parts against the model's own number
SINK = 0.3  # mean attention weight from which on the first word is called a sink


@dataclass(frozen=True)
class SourcePart:
    """The part that came from one word: summed over heads, or of one head."""

    mark: Mark
    column: int  # the number of the word in the text that it stands in
    text: str  # "text", or "source": what an encoder read
    value: float
    weight: float | None  # attention weight; None where several heads are summed


class HeadSources(Sequence[SourcePart]):
    """The sources of one head, the largest first, by absolute value.

    They are made when somebody looks: a long text has many times more of them than are ever read.
    """

    def __init__(
        self,
        marks: Sequence[Mark],
        text: str,
        values: Float[np.ndarray, " column"],
        weights: Float[np.ndarray, " column"],
    ) -> None:
        self._marks, self.text, self._values, self._weights = marks, text, values, weights

    @property
    def first_weight(self) -> float:
        """The attention weight on the first word of the text."""
        return float(self._weights[0]) if len(self._weights) else 0.0

    @cached_property
    def _order(self) -> Int[np.ndarray, " source"]:
        reached = self._weights.nonzero()[0]
        return reached[np.argsort(-np.abs(self._values[reached]), kind="stable")]

    def __len__(self) -> int:
        return int(np.count_nonzero(self._weights))

    @overload
    def __getitem__(self, place: int) -> SourcePart: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[SourcePart, ...]: ...
    def __getitem__(self, place: int | slice) -> SourcePart | tuple[SourcePart, ...]:
        if isinstance(place, slice):
            return tuple(map(self._part, self._order[place].tolist()))
        return self._part(int(self._order[place]))

    def _part(self, column: int) -> SourcePart:
        value, weight = float(self._values[column]), float(self._weights[column])
        return SourcePart(self._marks[column], column, self.text, value, weight)


@dataclass(frozen=True, eq=False)
class HeadPart:
    """What one head added directly: its value is the sum over its sources.

    Of a head that is ablated or patched, its value is ``replaced``: what was put in its place.
    """

    name: str
    value: float
    sources: HeadSources  # the largest first, by absolute value
    replaced: float | None = None

    def __repr__(self) -> str:
        if self.replaced is not None:
            return f"{self.name} {self.value:+.2f}, replaced"
        strongest = self.sources[0] if self.sources else None
        looking = (
            ""
            if strongest is None
            else (f", looking {strongest.weight:.2f} at {strongest.mark.text!r}")
        )
        return f"{self.name} {self.value:+.2f}{looking}"


@dataclass(frozen=True)
class LayerPart:
    """What one layer added: all heads, cross-attention if any, feed-forward; and the sum so far."""

    name: str
    heads: float
    feed_forward: float
    sum: float  # of embedding, biases and all layers up to this one


@dataclass(frozen=True)
class WhyProof:
    """The check of a sum: its parts added up, against the number that the model itself gave."""

    sum: float
    measured: float
    error: float  # |sum − measured| / the larger logit, or the usual size of all of them
    attention_error: float  # the worst layer: Σ weight · v · W_O against its own output

    @property
    def exact(self) -> bool:
        """True if both errors are within 1e-4."""
        return max(self.error, self.attention_error) <= TOLERANCE


@dataclass(frozen=True)
class Effect:
    """One head or feed-forward layer, ablated in a real run."""

    name: str
    direct: float  # its part of the sum
    total: float  # target with it − target without it
    probability: float  # of the token, without it

    @property
    def survives(self) -> bool:
        """True if ablation confirms the direct part: same sign, and at least a quarter of it."""
        return self.direct * self.total > 0 and abs(self.total) >= abs(self.direct) / 4


@dataclass(frozen=True)
class Effects:
    """The effects of all heads and feed-forward layers, the largest first."""

    all: tuple[Effect, ...]
    target: float  # of the model as it is
    probability: float  # of the token, as it is

    def of(self, name: str) -> Effect | None:
        """The effect of one head or layer; None if it was not measured."""
        return next((one for one in self.all if one.name == name), None)

    def rank_correlation(self, names: Iterable[str] | None = None) -> float:
        """Spearman's correlation of direct parts and total effects; NaN for fewer than three."""
        chosen = self.all if names is None else [one for one in self.all if one.name in set(names)]
        return spearman([one.direct for one in chosen], [one.total for one in chosen])


@dataclass(frozen=True, eq=False)
class Why:
    """A logit, or the difference of two, as a sum of what every part of the model added."""

    text: str
    source_text: str | None
    model: str
    position: int
    mark: Mark  # the word at whose last token the prediction stands
    token: PredictedToken
    instead: PredictedToken | None
    total: float  # the sum of all parts: before a softcap, if there is one
    softcap: float | None
    columns: tuple[Mark, ...]  # the words of the text
    source_columns: tuple[Mark, ...]  # the words that the encoder read
    heads: tuple[HeadPart, ...]  # the largest first, by absolute value
    sources: tuple[SourcePart, ...]  # words, summed over all heads; the largest first
    feed_forwards: tuple[tuple[str, float], ...]  # in the order of the layers
    embedding: tuple[tuple[str, float], ...]  # token, position, segment
    biases: tuple[tuple[str, float], ...]  # the largest first
    layers: tuple[LayerPart, ...]
    proof: WhyProof
    notes: tuple[str, ...]
    effects: Effects | None = None  # None: not measured
    fills: bool = False  # True: the token fills the place of the word; False: it follows the word

    @property
    def what(self) -> str:
        """What the total is, in words."""
        if self.instead is None:
            return f"logit of {self.token.text!r}"
        return f"logit of {self.token.text!r} − logit of {self.instead.text!r}"

    @property
    def sink(self) -> float | None:
        """The mean weight on the first word if it is an attention sink in this run; or None."""
        return None if self.source_columns else sink_weight(self.heads, len(self.columns))

    def head(self, name: str) -> HeadPart | None:
        """The part of one head; None if the model has no such head."""
        return next((part for part in self.heads if part.name == name), None)

    def grid(self) -> tuple[tuple[str, ...], Float[np.ndarray, "layer head"]]:
        """All heads as layers × heads: the layers' names in order, and the parts (NaN: no head)."""
        by_layer: dict[str, dict[int, float]] = {}
        for part in self.heads:
            layer, _, number = part.name.rpartition("H")
            by_layer.setdefault(layer, {})[int(number)] = part.value
        names = sorted(by_layer, key=lambda name: (int(name[1:]), name[0] == "C"))
        width = max((max(heads) + 1 for heads in by_layer.values()), default=0)
        grid = np.full((len(names), width), np.nan)
        for row, name in enumerate(names):
            for head, value in by_layer[name].items():
                grid[row, head] = value
        return tuple(names), grid

    def __repr__(self) -> str:
        return f"Why({self.what} = {self.total:.3f}, {shortened(self.text)!r})"


def sink_weight(heads: Iterable[HeadPart], words: int) -> float | None:
    """The mean weight on the first word, over the heads that see it, if it is an attention sink.

    It is one if it gets at least 0.3, and twice what each word gets from even weights; else None.
    """
    weights = [part.sources.first_weight for part in heads]
    seen = [weight for weight in weights if weight > 0]
    mean = sum(seen) / len(seen) if seen else 0.0
    return mean if mean >= max(SINK, 2 / words) and words > 2 else None


def spearman(first: list[float], second: list[float]) -> float:
    """The rank correlation of two lists; ties share their mean rank."""
    if len(first) < 3:
        return float("nan")
    ranks = [_ranks(np.array(numbers)) for numbers in (first, second)]
    return float(np.corrcoef(ranks)[0, 1])


def _ranks(numbers: Float[np.ndarray, " many"]) -> Float[np.ndarray, " many"]:
    below = (numbers[:, None] > numbers).sum(axis=1)
    equal = (numbers[:, None] == numbers).sum(axis=1)
    return np.asarray(below + (equal + 1) / 2, dtype=np.float64)
