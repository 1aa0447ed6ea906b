"""Sentences, planted models and counts for the tests of roles."""

from __future__ import annotations

from functools import cache

import numpy as np

from clearhead.explain.roles.built_in_properties import BUILT_IN
from clearhead.explain.roles.corpus.built_in_text import made_sentences
from clearhead.explain.roles.corpus.sentence import Sentence
from clearhead.explain.roles.corpus.sources import corpus_of
from clearhead.explain.roles.corpus.tokenised import TokenisedSentence, tokenised
from clearhead.explain.roles.counting import Count
from clearhead.explain.roles.counts.tally import Tally
from clearhead.explain.roles.planted import planted_model
from clearhead.explain.roles.roles import Roles, find_roles
from clearhead.text.token import Token


def conllu_row(*cells: str) -> str:
    filled = [*cells, *["_"] * (10 - len(cells))]
    return "\t".join(filled)


DONT = [
    "# text = They don't sleep.",
    conllu_row("1", "They", "they", "PRON", "_", "_", "4", "nsubj"),
    conllu_row("2-3", "don't"),
    conllu_row("2", "do", "do", "AUX", "_", "_", "4", "aux"),
    conllu_row("3", "n't", "not", "PART", "_", "_", "4", "advmod"),
    conllu_row("4", "sleep", "sleep", "VERB", "_", "_", "0", "root", "_", "SpaceAfter=No"),
    conllu_row("4.1", "soundly"),
    conllu_row("5", ".", ".", "PUNCT", "_", "_", "4", "punct"),
    "",
]


def cut(sentence: Sentence, *pieces: str) -> TokenisedSentence:
    """The sentence in the given pieces; < > are special tokens."""
    tokens, place = [], 0
    for number, piece in enumerate(pieces):
        if piece == "<>":
            tokens.append(Token(number, piece, place, place, special=True))
            continue
        start = sentence.text.index(piece, place)
        tokens.append(Token(number, piece, start, start + len(piece)))
        place = start + len(piece)
    return tokenised(sentence, tuple(tokens))


@cache
def some_sentences() -> tuple[Sentence, ...]:
    return tuple(made_sentences(37))


SOME = tuple(
    BUILT_IN[name]
    for name in ("previous token", "first token", "names", "relations", "rarest word")
)


def counted(count: Count, corpus: object = None) -> Tally:
    tally = Tally()
    for _ in count.windows(corpus_of(corpus or some_sentences()), tally):  # type: ignore[arg-type]
        pass
    return tally


def same(one: Tally, other: Tally) -> bool:
    """Whether two tallies count the same, whatever the order of their properties."""
    if set(one.index.numbers) != set(other.index.numbers) or one.totals != other.totals:
        return False
    order = [other.index.numbers[entry.name] for entry in one.index.entries]
    return one.occurs == other.occurs and all(
        np.array_equal(held, other.numbers[name][:, :, :, order])
        for name, held in one.numbers.items()
    )


@cache
def planted_sentences() -> tuple[Sentence, ...]:
    return tuple(made_sentences(151))


@cache
def planted_roles(causal: bool) -> Roles:
    return find_roles(planted_model(planted_sentences(), causal=causal), planted_sentences())
