"""A sentence prepared for counting: ids for the model, targets as arrays of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from clearhead.errors import InputError
from clearhead.explain.roles.corpus.sentence import Sentence
from clearhead.explain.roles.corpus.tokenised import TokenisedSentence
from clearhead.explain.roles.properties import AnyProperty, Level, Targets
from clearhead.explain.roles.property_index import PropertyIndex

LEVELS: tuple[Level, Level] = ("tokens", "words")


@dataclass(frozen=True)
class Prepared:
    """One sentence: ``edges[level]`` has a row (property, query, target) for each target."""

    sentence: Sentence
    ids: list[int]
    owners: np.ndarray  # the unit of each token
    sinks: dict[Level, np.ndarray]  # True: the first or a special token, an attention sink
    word_kinds: dict[Level, np.ndarray]
    edges: dict[Level, np.ndarray]
    cases: dict[str, int]  # queries with a target, by the property's name
    merged: int  # words that share a unit

    @property
    def half(self) -> int:
        """0: the half that finds roles; 1: the half that confirms them."""
        return self.sentence.key & 1


def prepare(
    tokenised: TokenisedSentence, properties: Sequence[AnyProperty], index: PropertyIndex
) -> Prepared:
    """Prepare a sentence: call every property for its targets."""
    units, tokens = tokenised.units, tokenised.tokens
    sizes: dict[Level, int] = {"tokens": len(tokens), "words": len(units)}
    rows: dict[Level, _Rows] = {level: _Rows() for level in LEVELS}
    cases: dict[str, int] = {}
    for one in properties:
        for name, targets in one.named(tokenised):
            if targets:
                many = rows[one.level].add(index.number(name, one), targets)
                if many:
                    cases[name] = many
    kinds = [index.word_kind(unit.kind) for unit in units]
    return Prepared(
        tokenised.sentence,
        [token.id for token in tokens],
        np.repeat(np.arange(len(units)), [len(unit.positions) for unit in units]),
        {
            "tokens": np.array([token.special or not i for i, token in enumerate(tokens)]),
            "words": np.array([unit.special or not i for i, unit in enumerate(units)]),
        },
        {"tokens": np.repeat(kinds, [len(u.positions) for u in units]), "words": np.array(kinds)},
        {level: found.edges(sizes[level], index) for level, found in rows.items()},
        cases,
        tokenised.merged,
    )


class _Rows:
    """Targets of all properties of one level: many small arrays would take longer than one."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.queries: list[int] = []
        self.keys: list[int] = []

    def add(self, number: int, targets: Targets) -> int:
        """Add the targets of a property; return how many queries have one."""
        cases, before, distinct = 0, None, {}
        for query, aims in targets.items():
            if aims:
                if aims is not before:  # most queries of a property share one list
                    before, distinct = aims, dict.fromkeys(aims)
                self.queries += [query] * len(distinct)
                self.keys += distinct
                cases += 1
        self.numbers += [number] * (len(self.keys) - len(self.numbers))
        return cases

    def edges(self, size: int, index: PropertyIndex) -> np.ndarray:
        """Return the rows (property, query, target); all must lie in the sentence."""
        found = np.array([self.numbers, self.queries, self.keys], dtype=np.int64).T
        outside = ((found[:, 1:] < 0) | (found[:, 1:] >= size)).any(axis=1)
        if outside.any():
            number, query, key = found[outside][0].tolist()
            raise InputError(
                f"the property {index.entries[number].name!r} names position "
                f"{max(query, key, key=abs)}; the sentence has positions 0 … {size - 1}.",
                hint='positions count words, or tokens with level="tokens".',
            )
        return found
