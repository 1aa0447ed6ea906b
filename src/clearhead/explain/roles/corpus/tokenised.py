"""A sentence as a model reads it: its tokens, and units that align words with tokens.

Attention is between tokens, annotation is about words. A *unit* is the smallest run of tokens
that shares no token with another word (Clark et al. 2019 merge subwords the same way):

- the pieces of a word are one unit: attention into it is summed, out of it averaged;
- words that one token or one multiword token contains ("don't" as do + n't) are one unit together;
- special tokens, and tokens of nothing but white space, are units of their own without a word.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from clearhead.explain.roles.corpus.rarity import WordCounts
from clearhead.explain.roles.corpus.recognisers import is_punctuation
from clearhead.explain.roles.corpus.sentence import Sentence, Span
from clearhead.text.token import Token


@dataclass(frozen=True, slots=True)
class Unit:
    """A run of tokens that stands for a word (rarely for several, or for none)."""

    text: str
    positions: range  # of its tokens
    words: tuple[int, ...]  # numbers of its words in the sentence
    start: int
    end: int
    special: bool
    kind: str  # part of speech, or the kind of its spelling: "mark", "number", "capital", "word"


@dataclass(frozen=True)
class TokenisedSentence:
    """The argument of a property: tokens, units, and the sentence with its annotation."""

    sentence: Sentence
    tokens: tuple[Token, ...]
    units: tuple[Unit, ...]
    counts: WordCounts | None = None  # of the corpus, where it was read twice

    @cached_property
    def unit_of_word(self) -> dict[int, int]:
        """The unit of each word, by its number in the sentence."""
        return {word: place for place, unit in enumerate(self.units) for word in unit.words}

    def units_with(self, spans: Iterable[Span]) -> list[int]:
        """Return the units that overlap any of these spans of characters."""
        wanted = list(spans)
        return [
            place
            for place, unit in enumerate(self.units)
            if not unit.special
            and any(unit.start < end and start < unit.end for start, end in wanted)
        ]

    @property
    def merged(self) -> int:
        """The number of words that share a unit with another word."""
        return sum(len(unit.words) for unit in self.units if len(unit.words) > 1)


def tokenised(
    sentence: Sentence, tokens: tuple[Token, ...], counts: WordCounts | None = None
) -> TokenisedSentence:
    """Group the tokens of a sentence to units."""
    starts = [word.start for word in sentence.words]
    ends = [word.end for word in sentence.words]
    units: list[Unit] = []
    first, held = 0, range(0)  # where the unit begins, the words that it touches
    for place, token in enumerate(tokens):
        start, end = _without_space(sentence.text, token)
        touched = range(0)
        if start < end and not token.special:
            touched = range(bisect_right(ends, start), bisect_left(starts, end))
        joins = len(held) and len(touched) and touched.start < held.stop
        if place and not joins:
            units.append(_unit(sentence, tokens, range(first, place), held))
            first, held = place, range(0)
        held = range(held.start, max(held.stop, touched.stop)) if joins else touched
    if tokens:
        units.append(_unit(sentence, tokens, range(first, len(tokens)), held))
    return TokenisedSentence(sentence, tokens, tuple(units), counts)


def _without_space(text: str, token: Token) -> Span:
    """The token's characters without the white space around them."""
    piece = text[token.start : token.end]
    lead = len(piece) - len(piece.lstrip())
    return token.start + lead, token.start + len(piece.rstrip()) if piece.strip() else token.start


def _unit(sentence: Sentence, tokens: tuple[Token, ...], run: range, held: range) -> Unit:
    inside = tokens[run.start : run.stop]
    start = inside[0].start
    end = max(token.end for token in inside)
    text = sentence.text[start:end].strip() or inside[0].text
    words = tuple(held)
    pos = next((sentence.words[word].pos for word in words if sentence.words[word].pos), "")
    special = inside[0].special
    kind = "special" if special else pos or _spelled_kind(text)
    return Unit(text, run, words, start, end, special, kind)


def _spelled_kind(text: str) -> str:
    if is_punctuation(text):
        return "mark"
    if any(character.isdigit() for character in text):
        return "number"
    return "capital" if text[:1].isupper() else "word"
