from __future__ import annotations

from clearhead.explain.roles.corpus.conllu import conllu_sentences
from tests.shared.role_models import DONT, cut


def test_pieces_of_a_word_are_one_unit_and_words_in_one_token_too() -> None:
    (sentence,) = conllu_sentences(DONT)
    read = cut(sentence, "<>", "The", "y", " don", "'t", " sle", "ep", ".", "<>")
    assert [unit.text for unit in read.units] == ["<>", "They", "don't", "sleep", ".", "<>"]
    assert [unit.words for unit in read.units] == [(), (0,), (1, 2), (3,), (4,), ()]
    assert read.unit_of_word == {0: 1, 1: 2, 2: 2, 3: 3, 4: 4}
    assert read.merged == 2
    across = cut(sentence, "They do", "n't", " sleep", ".")  # a token across a word border
    assert [unit.text for unit in across.units] == ["They don't", "sleep", "."]
