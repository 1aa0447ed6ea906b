"""Scores: what the counts say about one head and one property, on one half of the corpus."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from clearhead.explain.roles.built_in import FIRST, SPECIAL
from clearhead.explain.roles.cases import FARTHEST, ONE
from clearhead.explain.roles.intervals import wilson_interval
from clearhead.explain.roles.tally import Tally

FIND, CONFIRM = 0, 1  # the halves
CLEARLY = 0.1  # of the weight more than evenly spread
RESTING = 0.5  # a head rests if so many of its strongest keys are the first or special tokens


@dataclass(frozen=True)
class Score:
    """One head and one property on one half.

    Shares of cases unless said otherwise. ``mass`` is the mean weight on targets, ``share`` the
    same as a part of the weight on all keys that took part.
    """

    head: str
    property_name: str
    cases: int
    hits: int
    mass: float
    share: float
    offset: int  # the best fixed one, chosen on the half that finds
    at_offset: float  # what that offset hits
    at_random: float  # what choosing at random among visible keys hits
    at_random_alike: float | None  # … among those of the target's kind; for relations only

    @property
    def accuracy(self) -> float:
        """How often the strongest key is a target."""
        return self.hits / self.cases

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the accuracy."""
        return wilson_interval(self.hits, self.cases)

    @property
    def baseline(self) -> float:
        """The most that a head would get for free."""
        return max(self.at_offset, self.at_random, self.at_random_alike or 0.0)

    @property
    def lift(self) -> float:
        """How far above the baseline, as a part of what was possible."""
        return (self.accuracy - self.baseline) / max(1.0 - self.baseline, 1e-9)


@dataclass
class ScoreBook:
    """Scores out of a tally, by layer, head and number of the property."""

    tally: Tally
    _sharing: dict[tuple[int, int, int, int], tuple[int, float, float, float]] = field(
        default_factory=dict, repr=False
    )

    @cached_property
    def resting(self) -> np.ndarray:
        """For each layer and head, how often the strongest key is the first or a special token.

        0 where these get hardly more weight than spreading it evenly would give them.
        """
        numbers, known = self.tally.numbers, self.tally.book.numbers
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
        """1 where first and special tokens are left out: for heads that rest on them."""
        if self.tally.book.entries[number].kind == "rest":
            return 0
        return int(self.resting[layer, head] >= RESTING)

    def cases(self, half: int, layer: int, head: int, number: int) -> int:
        """How many cases a score would rest on."""
        variant = self.variant(layer, head, number)
        return int(self.tally.numbers["counts"][half, variant, layer, number])

    def score(self, half: int, layer: int, head: int, number: int) -> Score:
        """One score; there must be cases."""
        variant = self.variant(layer, head, number)
        at = (half, variant, layer, number)
        numbers, entry = self.tally.numbers, self.tally.book.entries[number]
        cases = int(numbers["counts"][at])
        mass, kept = int(numbers["mass"][at][head]), int(numbers["kept"][at][head])
        offset, at_offset, even, alike = self._shared(at)
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

    def _shared(self, at: tuple[int, int, int, int]) -> tuple[int, float, float, float]:
        """Best offset, what it hits, and the two random baselines: the same for all heads."""
        if at not in self._sharing:
            numbers, cases = self.tally.numbers, int(self.tally.numbers["counts"][at])
            best = int(numbers["offsets"][(FIND, *at[1:])].argmax())
            self._sharing[at] = (
                best - FARTHEST,
                int(numbers["offsets"][at][best]) / cases,
                int(numbers["even"][at]) / ONE / cases,
                int(numbers["alike"][at]) / ONE / cases,
            )
        return self._sharing[at]
