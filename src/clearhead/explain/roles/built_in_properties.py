"""The built-in properties, defined like those of a user."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Literal

from clearhead.errors import InputError
from clearhead.explain.roles.corpus.recognisers import is_punctuation
from clearhead.explain.roles.corpus.tokenised import TokenisedSentence
from clearhead.explain.roles.properties import AnyProperty, Property, PropertyFamily, Targets

OFFSETS = {"previous token": -1, "itself": 0, "next token": 1, "2 before": -2, "2 after": 2}
FIRST, SPECIAL = "first token", "special token"


def offset_property(name: str, offset: int) -> Property:
    """The token at a fixed distance."""

    def targets(sentence: TokenisedSentence) -> Targets:
        size, tokens = len(sentence.tokens), sentence.tokens
        return {
            query: (query + offset,)
            for query in range(max(0, -offset), min(size, size - offset))
            if not tokens[query].special and not tokens[query + offset].special
        }

    return Property(name, targets, level="tokens", kind="position")


def first_token(sentence: TokenisedSentence) -> Targets:
    """The first token, whatever it is."""
    return {query: (0,) for query in _plain(sentence) if query}


def special_token(sentence: TokenisedSentence) -> Targets:
    """Special tokens other than the first."""
    places = [i for i, token in enumerate(sentence.tokens) if token.special and i]
    return dict.fromkeys(_plain(sentence), places) if places else {}


def same_token(sentence: TokenisedSentence) -> Targets:
    """Earlier occurrences of the same token."""
    return {query: places for query, places in _earlier(sentence).items() if places}


def induction(sentence: TokenisedSentence) -> Targets:
    """Tokens that followed earlier occurrences of the same token (Olsson et al. 2022)."""
    found = {
        query: [place + 1 for place in places if place + 1 < query]
        for query, places in _earlier(sentence).items()
    }
    return {query: places for query, places in found.items() if places}


def punctuation(sentence: TokenisedSentence) -> Targets:
    """Delimiters and punctuation marks."""
    return _elsewhere(sentence, [i for i, u in enumerate(sentence.units) if is_punctuation(u.text)])


def rarest_word(sentence: TokenisedSentence) -> Targets:
    """The word of the sentence that is rarest in the corpus, where one alone is."""
    counts = sentence.counts
    if counts is None:
        return {}
    rarity = {
        place: counts[unit.text]
        for place, unit in enumerate(sentence.units)
        if not unit.special and not is_punctuation(unit.text)
    }
    least = min(rarity.values(), default=0)
    rarest = [place for place, count in rarity.items() if count == least]
    return _elsewhere(sentence, rarest) if len(rarest) == 1 else {}


def marked(label: str) -> Property:
    """Words in spans that a recogniser marked: "date", "number", "name"."""

    def targets(sentence: TokenisedSentence) -> Targets:
        spans = sentence.sentence.spans.get(label, ())
        return _elsewhere(sentence, sentence.units_with(spans)) if spans else {}

    return Property(f"{label}s", targets)


def entities(sentence: TokenisedSentence) -> dict[str, Targets]:
    """Named entities that an annotator marked, one property for each label."""
    return {
        label: _elsewhere(sentence, sentence.units_with(spans))
        for label, spans in sentence.sentence.spans.items()
        if label.startswith("entity ") and spans
    }


def parts_of_speech(sentence: TokenisedSentence) -> dict[str, Targets]:
    """All verbs (nouns …): one property for each part of speech."""
    places: dict[str, list[int]] = defaultdict(list)
    for place, unit in enumerate(sentence.units):
        for pos in {sentence.sentence.words[word].pos for word in unit.words}:
            if pos:
                places[pos].append(place)
    return {f"every {pos}": _elsewhere(sentence, found) for pos, found in places.items()}


def relations(sentence: TokenisedSentence) -> dict[str, Targets]:
    """Every dependency relation, from the dependent to its head and from the head to it."""
    found: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for number, word in enumerate(sentence.sentence.words):
        if word.head is None or not word.relation:
            continue
        below, above = sentence.unit_of_word.get(number), sentence.unit_of_word.get(word.head)
        if below is None or above is None or below == above:
            continue
        found[relation_name(word.relation, "up")][below].append(above)
        found[relation_name(word.relation, "down")][above].append(below)
    return {name: {q: sorted(set(ks)) for q, ks in cases.items()} for name, cases in found.items()}


def relation_name(relation: str, direction: Literal["up", "down"]) -> str:
    """ "nsubj → head" or "head → nsubj"."""
    return f"{relation} → head" if direction == "up" else f"head → {relation}"


def coreference(sentence: TokenisedSentence) -> Targets:
    """From a pronoun to its antecedent."""
    found: dict[int, list[int]] = defaultdict(list)
    for pronoun, antecedent in sentence.sentence.coreference:
        targets = sentence.units_with([antecedent])
        for query in sentence.units_with([pronoun]):
            found[query] += [target for target in targets if target != query]
    return {query: sorted(set(targets)) for query, targets in found.items() if targets}


def given_words(phrases: Iterable[str]) -> Property:
    """Make a property of the given words or phrases, without regard to case.

    >>> given_words(["The sea", "lion"]).name
    'words: the sea, lion'
    """
    wanted = [phrase.lower().split() for phrase in phrases]
    if not wanted or not all(wanted):
        raise InputError("words and phrases to look for are texts with at least one letter.")
    name = "words: " + ", ".join(" ".join(phrase) for phrase in wanted)

    def targets(sentence: TokenisedSentence) -> Targets:
        texts = [unit.text.lower() for unit in sentence.units]
        places = {
            start + step
            for phrase in wanted
            for start in range(len(texts))
            if texts[start : start + len(phrase)] == phrase
            for step in range(len(phrase))
        }
        return _elsewhere(sentence, sorted(places))

    return Property(name, targets)


def _plain(sentence: TokenisedSentence) -> list[int]:
    return [i for i, token in enumerate(sentence.tokens) if not token.special]


def _earlier(sentence: TokenisedSentence) -> dict[int, list[int]]:
    """For each token, where the same one stood before."""
    seen: dict[int, list[int]] = defaultdict(list)
    found = {}
    for place in _plain(sentence):
        before = seen[sentence.tokens[place].id]
        found[place] = list(before)
        before.append(place)
    return found


def _elsewhere(sentence: TokenisedSentence, places: list[int]) -> Targets:
    """From every word to those places, the word itself left out."""
    found = {query: places for query, unit in enumerate(sentence.units) if not unit.special}
    for query in found.keys() & set(places):
        found[query] = [place for place in places if place != query]
    return {query: targets for query, targets in found.items() if targets}


BUILT_IN: dict[str, AnyProperty] = {
    **{name: offset_property(name, offset) for name, offset in OFFSETS.items()},
    FIRST: Property(FIRST, first_token, level="tokens", kind="rest"),
    SPECIAL: Property(SPECIAL, special_token, level="tokens", kind="rest"),
    "same token": Property("same token", same_token, level="tokens"),
    "induction": Property("induction", induction, level="tokens"),
    "punctuation": Property("punctuation", punctuation),
    "rarest word": Property("rarest word", rarest_word, kind="relation"),
    "dates": marked("date"),
    "numbers": marked("number"),
    "names": marked("name"),
    "entities": PropertyFamily("entities", entities),
    "parts of speech": PropertyFamily("parts of speech", parts_of_speech),
    "relations": PropertyFamily("relations", relations, kind="relation"),
    "coreference": Property("coreference", coreference, kind="relation"),
}
