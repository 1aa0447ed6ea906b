from __future__ import annotations

import json

from clearhead.explain.roles.corpus.sentence import AnnotatedWord, Sentence

WORDS = (AnnotatedWord("kids", 0, 4, "NOUN", 1, "nsubj"), AnnotatedWord("ran", 5, 8, "VERB"))
SENTENCE = Sentence("kids ran", WORDS, {"name": ((0, 4),)}, (((5, 8), (0, 4)),))


def test_a_sentence_survives_json() -> None:
    plain = json.loads(json.dumps(SENTENCE.to_plain()))
    assert Sentence.from_plain(plain) == SENTENCE


def test_a_sentence_is_parsed_if_it_has_relations() -> None:
    assert SENTENCE.parsed
    assert not Sentence("ran", (AnnotatedWord("ran", 0, 3, "VERB"),)).parsed


def test_the_key_depends_on_the_text_alone() -> None:
    assert Sentence("kids ran", ()).key == SENTENCE.key
    assert Sentence("kids run", ()).key != SENTENCE.key
    assert SENTENCE.key < 1 << 56
    assert Sentence("\ud800", ()).key > 0  # half a surrogate pair is no error


def test_keys_divide_sentences_into_two_halves() -> None:
    halves = [Sentence(f"sentence {number}", ()).key & 1 for number in range(401)]
    assert 150 < sum(halves) < 250
