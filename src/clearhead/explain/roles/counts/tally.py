"""The tally: all counts, as integers, so that sums are the same in any order, batch size and number
of processes."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from torch import Tensor

from clearhead.errors import CheckpointError
from clearhead.explain.roles.cases import OFFSET_BINS, Cases
from clearhead.explain.roles.corpus.sentence import Sentence
from clearhead.explain.roles.property_index import PropertyIndex

HALVES = 2  # find and confirm
VARIANTS = 2  # all keys; without attention sinks (the first and special tokens)
SAMPLES = 12  # sentences kept for each property, for examples and interventions
BY_HEAD, BY_LAYER = ("hits", "mass", "kept"), ("counts", "even", "alike", "offsets")


@dataclass(frozen=True)
class CountedLayer:
    """A layer whose heads are counted."""

    name: str
    heads: int
    causal: bool
    path: str
    value_dim: int


@dataclass
class Tally:
    """Counts by (half, variant, layer, property) and, of heads, by head too.

    ``hits``: the strongest key was a target. ``mass``: weight on targets. ``kept``: weight on all
    candidates. ``counts``: cases. ``even``, ``alike``, ``offsets``: see :class:`Cases`.
    """

    index: PropertyIndex = field(default_factory=PropertyIndex)
    layers: list[CountedLayer] = field(default_factory=list)
    numbers: dict[str, np.ndarray] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)  # sentences, tokens, words …
    occurs: dict[str, int] = field(default_factory=dict)  # cases before any mask
    samples: dict[str, list[tuple[int, str, Sentence]]] = field(default_factory=dict)

    def grow(self) -> None:
        """Enlarge the arrays to all layers and properties that are known by now."""
        properties, heads = len(self.index.entries), max(one.heads for one in self.layers)
        shape = (HALVES, VARIANTS, len(self.layers), properties)
        for name in (*BY_HEAD, *BY_LAYER):
            last = {"offsets": (OFFSET_BINS,)}.get(name, (heads,) if name in BY_HEAD else ())
            held = self.numbers.get(name)
            if held is None or held.shape[3] < properties:
                new = np.zeros((*shape, *last), dtype=np.int64)
                if held is not None:
                    new[:, :, :, : held.shape[3]] = held
                self.numbers[name] = new

    def add_heads(self, variant: int, layer: int, hits: Tensor, mass: Tensor, kept: Tensor) -> None:
        """Add counts of a layer's heads, each (2 · property, head)."""
        for name, found in zip(BY_HEAD, (hits, mass, kept), strict=True):
            halves = found.reshape(HALVES, -1, found.shape[1]).numpy()
            self.numbers[name][:, variant, layer, : halves.shape[1], : halves.shape[2]] += halves

    def add_cases(self, variant: int, layer: int, cases: Cases) -> None:
        """Add counts of a layer that are the same for all its heads."""
        for name in BY_LAYER:
            found = getattr(cases, name)
            halves = found.view(HALVES, -1, *found.shape[1:]).numpy()
            self.numbers[name][:, variant, layer, : halves.shape[1]] += halves

    def add_sample(self, name: str, sentence: Sentence) -> None:
        """Keep the sentence as a sample of a property if it is among the first by its key."""
        held = self.samples.setdefault(name, [])
        entry = (-sentence.key, sentence.text, sentence)
        full = len(held) == SAMPLES
        if full and entry[0] <= held[0][0]:
            return
        if any(text == entry[1] for _, text, _ in held):
            return
        (heapq.heapreplace if full else heapq.heappush)(held, entry)

    def count(self, what: str, many: int) -> None:
        """Add to a total."""
        self.totals[what] = self.totals.get(what, 0) + many

    def expect(self, layers: Sequence[CountedLayer]) -> None:
        """Take these layers, or complain if others were counted before."""
        self.layers = self.layers or list(layers)
        if self.layers != list(layers):
            raise CheckpointError(
                "the counts that were kept are of a model with other layers.",
                hint="remove the file that keeps them (keep=), and count again.",
            )

    def add(self, other: Tally) -> None:
        """Add the counts of another process, on other sentences."""
        if not other.layers:
            return
        self.layers = self.layers or other.layers
        if self.layers != other.layers:
            raise CheckpointError("two counts do not belong together: their models differ.")
        place = [self.index.enter(entry) for entry in other.index.entries]
        self.grow()
        for name, held in other.numbers.items():
            self.numbers[name][:, :, :, place] += held  # no place comes twice
        for what, many in other.totals.items():
            self.count(what, many)
        for name, many in other.occurs.items():
            self.occurs[name] = self.occurs.get(name, 0) + many
        for name, found in other.samples.items():
            for _, _, sentence in found:
                self.add_sample(name, sentence)
