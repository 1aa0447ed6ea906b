from __future__ import annotations

import re
from pathlib import Path

from clearhead.explain.roles import built_in_properties as built_in
from clearhead.explain.roles.corpus.conllu import conllu_sentences
from clearhead.explain.roles.corpus.sentence import AnnotatedWord, Sentence
from clearhead.explain.roles.corpus.tokenised import tokenised
from clearhead.text.token import Token
from tests.shared.role_models import DONT, cut

PAGE = Path(__file__).resolve().parents[3] / "docs" / "roles.md"


def test_relations_go_both_ways_between_units() -> None:
    (sentence,) = conllu_sentences(DONT)
    read = cut(sentence, "They", " don", "'t", " sleep", ".")
    found = built_in.relations(read)
    assert found["nsubj → head"] == {0: [2]} and found["head → nsubj"] == {2: [0]}
    assert found["aux → head"] == {1: [2]} and found["punct → head"] == {3: [2]}


def test_the_other_properties_on_one_sentence() -> None:
    words = ["the", "cat", "saw", "the", "dog", "and", "the", "cat", "ran"]
    text, place, annotated = " ".join(words), 0, []
    for word in words:
        annotated.append(AnnotatedWord(word, place, place + len(word)))
        place += len(word) + 1
    ids = {word: number for number, word in enumerate(dict.fromkeys(words))}
    tokens = tuple(Token(ids[word.text], word.text, word.start, word.end) for word in annotated)
    read = tokenised(Sentence(text, tuple(annotated)), tokens)
    assert built_in.same_token(read) == {3: [0], 6: [0, 3], 7: [1]}
    assert built_in.induction(read) == {3: [1], 6: [1, 4], 7: [2]}
    assert built_in.BUILT_IN["previous token"].named(read)
    targets = dict(built_in.BUILT_IN["previous token"].named(read))["previous token"]
    assert targets[1] == (0,) and 0 not in targets
    given = built_in.given_words(["the dog"]).targets(read)
    assert given[0] == [3, 4] and given[3] == [4]


def test_the_page_of_roles_lists_every_property() -> None:
    table = PAGE.read_text().split("| name | targets |", 1)[1].split("\n\n", 1)[0]
    first_cells = "".join(re.findall(r"^\| (.*?) \|", table, re.MULTILINE))
    listed = set(re.findall(r"`([^`(]+)`", first_cells))
    assert listed == set(built_in.BUILT_IN)
