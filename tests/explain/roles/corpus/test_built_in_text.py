from __future__ import annotations

from clearhead.explain.roles.corpus.built_in_text import made_sentences
from clearhead.explain.roles.corpus.sentence import Sentence


def test_built_in_sentences_are_annotated_rightly() -> None:
    made = list(made_sentences(24))
    assert made == list(made_sentences(24))
    for sentence in made:
        assert all(sentence.text[w.start : w.end] == w.text for w in sentence.words)
        roots = [word for word in sentence.words if word.head is None]
        assert len(roots) == 1
        for pronoun, antecedent in sentence.coreference:
            assert sentence.text[slice(*pronoun)] == "they" and antecedent[0] < pronoun[0]
    assert Sentence.from_plain(made[0].to_plain()) == made[0]
