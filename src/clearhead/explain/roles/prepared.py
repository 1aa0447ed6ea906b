"""A sentence made ready to be counted: ids for the model, targets as arrays of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from clearhead.errors import InputError
from clearhead.explain.roles.book import Book
from clearhead.explain.roles.properties import AnyProperty, Level, Targets
from clearhead.explain.roles.sentence import Sentence
from clearhead.explain.roles.tokenised import TokenisedSentence

LEVELS: tuple[Level, Level] = ("tokens", "words")


@dataclass(frozen=True)
class Prepared:
    """One sentence: ``edges[level]`` has a column (property, query, target) for each target."""

    sentence: Sentence
    ids: list[int]
    owners: np.ndarray  # the unit of each token
    rests: dict[Level, np.ndarray]  # True: the first or a special token, where heads rest
    word_kinds: dict[Level, np.ndarray]
    edges: dict[Level, np.ndarray]
    cases: dict[str, int]  # queries with a target, by the property's name
    merged: int  # words that share a unit

    @property
    def half(self) -> int:
        """0: the half that finds roles; 1: the half that confirms them."""
        return self.sentence.key & 1


def prepare(
    tokenised: TokenisedSentence, properties: Sequence[AnyProperty], book: Book
) -> Prepared:
    """Ask every property for its targets."""
    units, tokens = tokenised.units, tokenised.tokens
    sizes: dict[Level, int] = {"tokens": len(tokens), "words": len(units)}
    columns: dict[Level, list[tuple[int, int, int]]] = {"tokens": [], "words": []}
    cases: dict[str, int] = {}
    for one in properties:
        for name, targets in one.named(tokenised):
            if targets:
                number = book.number(name, one)
                found = _columns(number, name, targets, sizes[one.level])
                columns[one.level] += found
                if found:
                    cases[name] = sum(1 for keys in targets.values() if keys)
    kinds = [book.word_kind(unit.kind) for unit in units]
    return Prepared(
        tokenised.sentence,
        [token.id for token in tokens],
        np.repeat(np.arange(len(units)), [len(unit.positions) for unit in units]),
        {
            "tokens": np.array([token.special or not i for i, token in enumerate(tokens)]),
            "words": np.array([unit.special or not i for i, unit in enumerate(units)]),
        },
        {"tokens": np.repeat(kinds, [len(u.positions) for u in units]), "words": np.array(kinds)},
        {level: np.array(found, dtype=np.int64).reshape(-1, 3) for level, found in columns.items()},
        cases,
        tokenised.merged,
    )


def _columns(number: int, name: str, targets: Targets, size: int) -> list[tuple[int, int, int]]:
    found = [(number, query, key) for query, keys in targets.items() for key in dict.fromkeys(keys)]
    for _, query, key in found:
        if not (0 <= query < size and 0 <= key < size):
            raise InputError(
                f"the property {name!r} names position {max(query, key, key=abs)}; the sentence "
                f"has positions 0 … {size - 1}.",
                hint='positions count words, or tokens with level="tokens".',
            )
    return found
