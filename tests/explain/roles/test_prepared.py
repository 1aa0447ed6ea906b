from __future__ import annotations

import pytest

from clearhead.errors import InputError
from clearhead.explain.roles.corpus.conllu import conllu_sentences
from clearhead.explain.roles.corpus.tokenised import TokenisedSentence
from clearhead.explain.roles.prepared import Prepared, prepare
from clearhead.explain.roles.properties import Property
from clearhead.explain.roles.property_index import PropertyIndex
from tests.shared.role_models import DONT, cut


def read() -> TokenisedSentence:
    """Units: <>, They, don't, sleep, “.”; of the words do and n't one unit."""
    (sentence,) = conllu_sentences(DONT)
    return cut(sentence, "<>", "They", " don", "'t", " sleep", ".")


def prepared(*properties: Property) -> tuple[Prepared, PropertyIndex]:
    index = PropertyIndex()
    return prepare(read(), properties, index), index


def test_targets_become_rows_without_repetition() -> None:
    aims = [1, 2, 1]
    found, index = prepared(
        Property("words", lambda _: {3: aims, 4: aims, 2: []}),
        Property("tokens", lambda _: {5: [0]}, level="tokens"),
        Property("never", lambda _: {}),
    )
    assert found.edges["words"].tolist() == [[0, 3, 1], [0, 3, 2], [0, 4, 1], [0, 4, 2]]
    assert found.edges["tokens"].tolist() == [[1, 5, 0]]
    assert found.cases == {"words": 2, "tokens": 1}
    assert [entry.name for entry in index.entries] == ["words", "tokens"]


def test_arrays_of_tokens_and_units() -> None:
    found, index = prepared()
    assert found.ids == [0, 1, 2, 3, 4, 5]
    assert found.owners.tolist() == [0, 1, 2, 2, 3, 4]
    assert found.sinks["words"].tolist() == [True, False, False, False, False]
    assert found.merged == 2
    kinds = {number: kind for kind, number in index.word_kinds.items()}
    assert [kinds[n] for n in found.word_kinds["words"].tolist()] == [
        "special", "PRON", "AUX", "VERB", "PUNCT",
    ]  # fmt: skip
    assert [kinds[n] for n in found.word_kinds["tokens"].tolist()][2:4] == ["AUX", "AUX"]
    assert found.half == found.sentence.key % 2


@pytest.mark.parametrize(("targets", "named"), [({1: [5]}, 5), ({-1: [0]}, -1), ({7: [0]}, 7)])
def test_targets_outside_the_sentence_are_refused(
    targets: dict[int, list[int]], named: int
) -> None:
    with pytest.raises(InputError, match=f"'far' names position {named}; .* positions 0 … 4"):
        prepared(Property("far", lambda _: targets))
