"""Text that is always there: sentences made by a small grammar, and prose that Python carries.

The grammar knows what it writes, so its sentences bring parts of speech, relations, coreference and
dates that are right by construction. The prose (``pydoc_data.topics``, Python's own help) is real
English without annotation. Both are the same at every run (the prose, for one version of Python).
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from clearhead.explain.roles.plain_text import sentences_in
from clearhead.explain.roles.recognisers import plain_sentence, recognised
from clearhead.explain.roles.sentence import AnnotatedWord, Sentence

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
_RESTS = ["slept", "laughed", "waited", "arrived", "returned"]
_FEELINGS = ["scared", "proud", "fond", "afraid", "tired"]
_ADVERBS = ["quickly", "slowly", "yesterday", "together", "again", "quietly"]
_GIVEN = ["Maria", "Peter", "Anna", "Thomas", "Elena", "Victor"]
_FAMILY = ["Novak", "Lang", "Silva", "Berger", "Moreau", "Keller"]
_TOWNS = ["Oslo", "Lisbon", "Vienna", "Dublin", "Prague"]
_COUNTS = ["two", "three", "five", "seven", "twelve"]
_MONTHS = ["January", "March", "April", "June", "August", "October", "December"]


@dataclass(eq=False)
class _Node:
    """A word of a tree: what depends on it stands to its left or to its right."""

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
    choice = random.Random(8)
    kinds = (_fear, _deed, _dated, _two_deeds, _with_clause, _again)
    seen: set[str] = set()
    while len(seen) < count:
        sentence = kinds[len(seen) % len(kinds)](choice)
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


def _noun(choice: random.Random, nouns: list[str], relation: str, case: str = "") -> _Node:
    """A noun phrase with none to two adjectives: distances must vary."""
    many = choice.choice((0, 0, 1, 1, 2))
    adjectives = [_Node(form, "ADJ", "amod") for form in choice.sample(_ADJECTIVES, many)]
    before = [_Node(case, "ADP", "case")] if case else []
    article = [_Node("the", "DET", "det")]
    if choice.random() < 0.25:
        article.append(_Node(choice.choice(_COUNTS), "NUM", "nummod"))
    return _Node(choice.choice(nouns), "NOUN", relation, [*before, *article, *adjectives])


def _name(choice: random.Random, relation: str) -> tuple[_Node, str, str]:
    given, family = choice.choice(_GIVEN), choice.choice(_FAMILY)
    return _person(given, family, relation), given, family


def _person(given: str, family: str, relation: str) -> _Node:
    return _Node(given, "PROPN", relation, right=[_Node(family, "PROPN", "flat")])


def _place(choice: random.Random) -> _Node:
    return _noun(choice, _PLACES, "obl", choice.choice(("near", "behind", "in")))


def _deed(choice: random.Random) -> Sentence:
    """The old farmers painted the boats near the quiet river."""
    return _sentence(_clause(choice))


def _clause(choice: random.Random, relation: str = "root") -> _Node:
    verb = _Node(choice.choice(_VERBS), "VERB", relation)
    verb.left = [_noun(choice, _ANIMATE, "nsubj")]
    verb.right = [_noun(choice, _THINGS, "obj")]
    if choice.random() < 0.6:
        verb.right.append(_place(choice))
    if choice.random() < 0.4:
        verb.right.append(_Node(choice.choice(_ADVERBS), "ADV", "advmod"))
    return verb


def _fear(choice: random.Random) -> Sentence:
    """The kids were scared of the lions, so they left: *they* are the kids."""
    subjects = choice.sample(_ANIMATE, 2)
    subject, other = (_noun(choice, [noun], "nsubj") for noun in subjects)
    other.relation = "obl"
    other.left.insert(0, _Node("of", "ADP", "case"))
    feeling = _Node(choice.choice(_FEELINGS), "ADJ", "root")
    they = _Node("they", "PRON", "nsubj")
    rest = _Node(choice.choice(_RESTS), "VERB", "advcl")
    rest.left = [_Node(",", "PUNCT", "punct", glued=True), _Node("so", "SCONJ", "mark"), they]
    rest.right = [_Node(choice.choice(_ADVERBS), "ADV", "advmod")]
    feeling.left = [subject, _Node("were", "AUX", "cop")]
    feeling.right = [other, rest]
    return _sentence(feeling, (they, subject))


def _dated(choice: random.Random) -> Sentence:
    """On 12 March 2021, Maria Novak visited the old castle in Oslo."""
    verb = _Node(choice.choice(_VERBS), "VERB")
    subject, _, _ = _name(choice, "nsubj")
    month = _Node(choice.choice(_MONTHS), "PROPN", "obl")
    month.left = [_Node("on", "ADP", "case"), _Node(str(choice.randint(1, 28)), "NUM", "nummod")]
    month.right = [_Node(str(choice.randint(1920, 2024)), "NUM", "nummod")]
    town = _Node(choice.choice(_TOWNS), "PROPN", "obl", [_Node("in", "ADP", "case")])
    verb.left = [month, _Node(",", "PUNCT", "punct", glued=True), subject]
    verb.right = [_noun(choice, _THINGS, "obj"), town]
    return _sentence(verb)


def _two_deeds(choice: random.Random) -> Sentence:
    """The doctors opened the letters, and the guards followed the boats."""
    first, second = _clause(choice), _clause(choice, "conj")
    second.left[:0] = [_Node(",", "PUNCT", "punct", glued=True), _Node("and", "CCONJ", "cc")]
    first.right.append(second)
    return _sentence(first)


def _with_clause(choice: random.Random) -> Sentence:
    """The singers that followed the old bakers described the houses."""
    verb = _clause(choice)
    inner = _Node(choice.choice(_VERBS), "VERB", "acl:relcl", [_Node("that", "PRON", "nsubj")])
    inner.right = [_noun(choice, _ANIMATE, "obj")]
    verb.left[0].right = [inner]
    return _sentence(verb)


def _again(choice: random.Random) -> Sentence:
    """Maria Novak met Peter Lang in Oslo, and later Maria Novak wrote to Peter Lang."""
    subject, *names = _name(choice, "nsubj")
    partner, *others = _name(choice, "obj")
    met = _Node("met", "VERB")
    met.left = [subject]
    met.right = [partner]
    met.right.append(_Node(choice.choice(_TOWNS), "PROPN", "obl", [_Node("in", "ADP", "case")]))
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
