"""Scores of one head and one property on one half of the corpus, computed from the counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from clearhead.explain.roles.built_in_properties import FIRST, SPECIAL
from clearhead.explain.roles.cases import FARTHEST, ONE
from clearhead.explain.roles.counts.tally import Tally
from clearhead.explain.roles.intervals import wilson_interval

FIND, CONFIRM = 0, 1  # the halves
CLEARLY = 0.1  # more weight than uniform attention would give
SINK_HEAD = 0.5  # an attention-sink head: so many strongest keys are first or special tokens


@dataclass(frozen=True)
class Score:
    """The score of one head and one property on one half.

    Numbers are shares of cases, unless said otherwise. ``mass`` is the mean weight on targets,
    ``share`` the same divided by the weight on all keys that took part.
    """

    head: str
    property_name: str
    cases: int
    hits: int
    mass: float
    share: float
    offset: int  # the best fixed one, chosen on the half that finds
    at_offset: float  # share of cases that this offset hits
    at_random: float  # expected hits of a random choice among visible keys
    at_random_alike: float | None  # … among keys of the target's word kind; for relations only

    @property
    def accuracy(self) -> float:
        """The share of cases whose strongest key is a target."""
        return self.hits / self.cases

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the accuracy."""
        return wilson_interval(self.hits, self.cases)

    @property
    def baseline(self) -> float:
        """The best of the trivial baselines: a fixed offset, a random choice."""
        return max(self.at_offset, self.at_random, self.at_random_alike or 0.0)

    @property
    def lift(self) -> float:
        """The accuracy above the baseline, divided by what was possible."""
        return (self.accuracy - self.baseline) / max(1.0 - self.baseline, 1e-9)


@dataclass
class ScoreTable:
    """All scores of a tally, by layer, head and number of the property."""

    tally: Tally
    _baselines: dict[tuple[int, int, int, int], tuple[int, float, float, float]] = field(
        default_factory=dict, repr=False
    )

    @cached_property
    def sink_share(self) -> np.ndarray:
        """For each layer and head, the share of queries whose strongest key is an attention sink.

        Sinks are the first and special tokens. The share is 0 if they get hardly more weight than
        uniform attention would give them.
        """
        numbers, known = self.tally.numbers, self.tally.index.numbers
        layers, heads = len(self.tally.layers), numbers["hits"].shape[-1]
        hits, mass = np.zeros((layers, heads)), np.zeros((layers, heads))
        even, cases = np.zeros((layers, 1)), np.ones((layers, 1))
        for name in (FIRST, SPECIAL):
            if name in known:
                hits += numbers["hits"][FIND, 0, :, known[name]]
                mass += numbers["mass"][FIND, 0, :, known[name]]
                even += numbers["even"][FIND, 0, :, known[name], None]
                cases = np.maximum(cases, numbers["counts"][FIND, 0, :, known[name], None])
        return np.where(mass - even >= CLEARLY * ONE * cases, hits / cases, 0.0)

    def variant(self, layer: int, head: int, number: int) -> int:
        """1 if first and special tokens are left out: for heads with attention sinks there."""
        if self.tally.index.entries[number].kind == "rest":
            return 0
        return int(self.sink_share[layer, head] >= SINK_HEAD)

    def cases(self, half: int, layer: int, head: int, number: int) -> int:
        """The number of cases behind a score."""
        variant = self.variant(layer, head, number)
        return int(self.tally.numbers["counts"][half, variant, layer, number])

    def score(self, half: int, layer: int, head: int, number: int) -> Score:
        """Compute one score; there must be cases."""
        variant = self.variant(layer, head, number)
        at = (half, variant, layer, number)
        numbers, entry = self.tally.numbers, self.tally.index.entries[number]
        cases = int(numbers["counts"][at])
        mass, kept = int(numbers["mass"][at][head]), int(numbers["kept"][at][head])
        offset, at_offset, even, alike = self._baselines_at(at)
        return Score(
            head=f"{self.tally.layers[layer].name}H{head}",
            property_name=entry.name,
            cases=cases,
            hits=int(numbers["hits"][at][head]),
            mass=mass / ONE / cases,
            share=mass / max(kept, 1),
            offset=offset,
            at_offset=0.0 if entry.kind in ("position", "rest") else at_offset,
            at_random=even,
            at_random_alike=alike if entry.kind == "relation" else None,
        )

    def _baselines_at(self, at: tuple[int, int, int, int]) -> tuple[int, float, float, float]:
        """Best offset, its hits, and the two random baselines: the same for all heads."""
        if at not in self._baselines:
            numbers, cases = self.tally.numbers, int(self.tally.numbers["counts"][at])
            best = int(numbers["offsets"][(FIND, *at[1:])].argmax())
            self._baselines[at] = (
                best - FARTHEST,
                int(numbers["offsets"][at][best]) / cases,
                int(numbers["even"][at]) / ONE / cases,
                int(numbers["alike"][at]) / ONE / cases,
            )
        return self._baselines[at]
