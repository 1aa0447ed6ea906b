"""The built-in text: sentences made by a small grammar, and prose from Python's own help.

The sentences of the grammar have parts of speech, relations, coreference and dates that are right
by construction. The prose (``pydoc_data.topics``) is real English without annotation. Both are the
same in every run (the prose, for one version of Python).
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from clearhead.explain.roles.corpus.plain_text import sentences_in
from clearhead.explain.roles.corpus.recognisers import plain_sentence, recognised
from clearhead.explain.roles.corpus.sentence import AnnotatedWord, Sentence

MADE, PROSE = 320, 200  # sentences of each kind
_ANIMATE = [
    "kids",
    "students",
    "lions",
    "farmers",
    "doctors",
    "sailors",
    "neighbours",
    "singers",
    "guards",
    "bakers",
]
_THINGS = [
    "books",
    "boats",
    "letters",
    "houses",
    "bridges",
    "gardens",
    "songs",
    "maps",
    "engines",
    "windows",
]
_PLACES = ["river", "market", "village", "station", "harbour", "forest", "library", "castle"]
_ADJECTIVES = [
    "old",
    "quiet",
    "young",
    "clever",
    "heavy",
    "strange",
    "famous",
    "tired",
    "small",
    "bright",
]
_VERBS = ["opened", "painted", "carried", "followed", "watched", "repaired", "described", "visited"]
_INTRANSITIVE = ["slept", "laughed", "waited", "arrived", "returned"]
_FEELINGS = ["scared", "proud", "fond", "afraid", "tired"]
_ADVERBS = ["quickly", "slowly", "yesterday", "together", "again", "quietly"]
_GIVEN = ["Maria", "Peter", "Anna", "Thomas", "Elena", "Victor"]
_FAMILY = ["Novak", "Lang", "Silva", "Berger", "Moreau", "Keller"]
_TOWNS = ["Oslo", "Lisbon", "Vienna", "Dublin", "Prague"]
_COUNTS = ["two", "three", "five", "seven", "twelve"]
_MONTHS = ["January", "March", "April", "June", "August", "October", "December"]


@dataclass(eq=False)
class _Node:
    """A word of a dependency tree, with its dependents to the left and to the right."""

    form: str
    pos: str
    relation: str = "root"
    left: list[_Node] = field(default_factory=list)
    right: list[_Node] = field(default_factory=list)
    glued: bool = False  # no space before it

    def words(self) -> Iterator[_Node]:
        """The words in the order of the text."""
        for node in self.left:
            yield from node.words()
        yield self
        for node in self.right:
            yield from node.words()


def built_in_sentences() -> Iterator[Sentence]:
    """All sentences of the built-in text."""
    yield from made_sentences(MADE)
    yield from prose_sentences(PROSE)


def made_sentences(count: int) -> Iterator[Sentence]:
    """Sentences of the grammar, annotated; no two the same."""
    rng = random.Random(8)
    kinds = (_fear, _deed, _dated, _two_deeds, _with_clause, _again)
    seen: set[str] = set()
    while len(seen) < count:
        sentence = kinds[len(seen) % len(kinds)](rng)
        if sentence.text not in seen:
            seen.add(sentence.text)
            yield sentence


def prose_sentences(count: int) -> Iterator[Sentence]:
    """Sentences of Python's own help that read as English."""
    from pydoc_data.topics import topics

    found = 0
    for name in sorted(topics):
        for text in sentences_in(topics[name].splitlines()):
            if found == count:
                return
            if _reads_as_prose(text):
                found += 1
                yield plain_sentence(text)


def _reads_as_prose(text: str) -> bool:
    plain = re.fullmatch(r"[A-Z][\w\s,;:'’“”\"()./-]*[.]", text) is not None
    return plain and 50 <= len(text) <= 220 and text.count('"') % 2 == 0 and "::" not in text


def _sentence(root: _Node, pair: tuple[_Node, _Node] | None = None) -> Sentence:
    """The tree as a sentence with a full stop."""
    root.right.append(_Node(".", "PUNCT", "punct", glued=True))
    nodes = list(root.words())
    above = {id(child): node for node in nodes for child in (*node.left, *node.right)}
    places = {id(node): number for number, node in enumerate(nodes)}
    text, spans = "", {}
    for node in nodes:
        form = node.form if text else node.form[0].upper() + node.form[1:]
        text += form if node.glued or not text else f" {form}"
        spans[id(node)] = (len(text) - len(form), len(text))
    words = []
    for node in nodes:
        start, end = spans[id(node)]
        head = places[id(above[id(node)])] if id(node) in above else None
        words.append(AnnotatedWord(text[start:end], start, end, node.pos, head, node.relation))
    links = () if pair is None else ((spans[id(pair[0])], spans[id(pair[1])]),)
    return Sentence(text, tuple(words), recognised(text), links)


def _noun(rng: random.Random, nouns: list[str], relation: str, case: str = "") -> _Node:
    """A noun phrase with none to two adjectives: distances must vary."""
    many = rng.choice((0, 0, 1, 1, 2))
    adjectives = [_Node(form, "ADJ", "amod") for form in rng.sample(_ADJECTIVES, many)]
    before = [_Node(case, "ADP", "case")] if case else []
    article = [_Node("the", "DET", "det")]
    if rng.random() < 0.25:
        article.append(_Node(rng.choice(_COUNTS), "NUM", "nummod"))
    return _Node(rng.choice(nouns), "NOUN", relation, [*before, *article, *adjectives])


def _name(rng: random.Random, relation: str) -> tuple[_Node, str, str]:
    given, family = rng.choice(_GIVEN), rng.choice(_FAMILY)
    return _person(given, family, relation), given, family


def _person(given: str, family: str, relation: str) -> _Node:
    return _Node(given, "PROPN", relation, right=[_Node(family, "PROPN", "flat")])


def _place(rng: random.Random) -> _Node:
    return _noun(rng, _PLACES, "obl", rng.choice(("near", "behind", "in")))


def _deed(rng: random.Random) -> Sentence:
    """The old farmers painted the boats near the quiet river."""
    return _sentence(_clause(rng))


def _clause(rng: random.Random, relation: str = "root") -> _Node:
    verb = _Node(rng.choice(_VERBS), "VERB", relation)
    verb.left = [_noun(rng, _ANIMATE, "nsubj")]
    verb.right = [_noun(rng, _THINGS, "obj")]
    if rng.random() < 0.6:
        verb.right.append(_place(rng))
    if rng.random() < 0.4:
        verb.right.append(_Node(rng.choice(_ADVERBS), "ADV", "advmod"))
    return verb


def _fear(rng: random.Random) -> Sentence:
    """The kids were scared of the lions, so they left: *they* are the kids."""
    subjects = rng.sample(_ANIMATE, 2)
    subject, other = (_noun(rng, [noun], "nsubj") for noun in subjects)
    other.relation = "obl"
    other.left.insert(0, _Node("of", "ADP", "case"))
    feeling = _Node(rng.choice(_FEELINGS), "ADJ", "root")
    they = _Node("they", "PRON", "nsubj")
    rest = _Node(rng.choice(_INTRANSITIVE), "VERB", "advcl")
    rest.left = [_Node(",", "PUNCT", "punct", glued=True), _Node("so", "SCONJ", "mark"), they]
    rest.right = [_Node(rng.choice(_ADVERBS), "ADV", "advmod")]
    feeling.left = [subject, _Node("were", "AUX", "cop")]
    feeling.right = [other, rest]
    return _sentence(feeling, (they, subject))


def _dated(rng: random.Random) -> Sentence:
    """On 12 March 2021, Maria Novak visited the old castle in Oslo."""
    verb = _Node(rng.choice(_VERBS), "VERB")
    subject, _, _ = _name(rng, "nsubj")
    month = _Node(rng.choice(_MONTHS), "PROPN", "obl")
    month.left = [_Node("on", "ADP", "case"), _Node(str(rng.randint(1, 28)), "NUM", "nummod")]
    month.right = [_Node(str(rng.randint(1920, 2024)), "NUM", "nummod")]
    town = _Node(rng.choice(_TOWNS), "PROPN", "obl", [_Node("in", "ADP", "case")])
    verb.left = [month, _Node(",", "PUNCT", "punct", glued=True), subject]
    verb.right = [_noun(rng, _THINGS, "obj"), town]
    return _sentence(verb)


def _two_deeds(rng: random.Random) -> Sentence:
    """The doctors opened the letters, and the guards followed the boats."""
    first, second = _clause(rng), _clause(rng, "conj")
    second.left[:0] = [_Node(",", "PUNCT", "punct", glued=True), _Node("and", "CCONJ", "cc")]
    first.right.append(second)
    return _sentence(first)


def _with_clause(rng: random.Random) -> Sentence:
    """The singers that followed the old bakers described the houses."""
    verb = _clause(rng)
    inner = _Node(rng.choice(_VERBS), "VERB", "acl:relcl", [_Node("that", "PRON", "nsubj")])
    inner.right = [_noun(rng, _ANIMATE, "obj")]
    verb.left[0].right = [inner]
    return _sentence(verb)


def _again(rng: random.Random) -> Sentence:
    """Maria Novak met Peter Lang in Oslo, and later Maria Novak wrote to Peter Lang."""
    subject, *names = _name(rng, "nsubj")
    partner, *others = _name(rng, "obj")
    met = _Node("met", "VERB")
    met.left = [subject]
    met.right = [partner]
    met.right.append(_Node(rng.choice(_TOWNS), "PROPN", "obl", [_Node("in", "ADP", "case")]))
    wrote = _Node("wrote", "VERB", "conj")
    to = _person(others[0], others[1], "obl")
    to.left = [_Node("to", "ADP", "case")]
    wrote.left = [
        _Node(",", "PUNCT", "punct", glued=True),
        _Node("and", "CCONJ", "cc"),
        _Node("later", "ADV", "advmod"),
        _person(names[0], names[1], "nsubj"),
    ]
    wrote.right = [to]
    met.right.append(wrote)
    return _sentence(met)
