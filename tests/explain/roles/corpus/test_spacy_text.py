from __future__ import annotations

import importlib.util
import sys

import pytest

from clearhead.errors import InputError, MissingExtraError
from clearhead.explain.roles import built_in_properties as built_in
from clearhead.explain.roles.corpus.sources import corpus_of
from clearhead.explain.roles.corpus.spacy_text import sentence_of, spacy_pipeline
from tests.shared.role_models import cut


def test_spacy_annotates_plain_text() -> None:
    spacy = pytest.importorskip("spacy")
    words = ["Maria", "Novak", "sleeps", "."]
    document = spacy.tokens.Doc(
        spacy.blank("en").vocab, words=words, spaces=[True, True, False, False],
        pos=["PROPN", "PROPN", "VERB", "PUNCT"], heads=[1, 2, 2, 2],
        deps=["compound", "nsubj", "ROOT", "punct"], ents=["B-PERSON", "I-PERSON", "O", "O"],
    )  # fmt: skip
    sentence = sentence_of(document)
    assert sentence.text == "Maria Novak sleeps."
    assert [(word.text, word.head, word.relation) for word in sentence.words] == [
        ("Maria", 1, "compound"), ("Novak", 2, "nsubj"), ("sleeps", None, ""), (".", 2, "punct"),
    ]  # fmt: skip
    assert sentence.spans["entity PERSON"] == ((0, 11),)
    read = cut(sentence, "Maria", " Novak", " sleeps", ".")
    assert built_in.entities(read)["entity PERSON"] == {0: [1], 1: [0], 2: [0, 1], 3: [0, 1]}
    pipeline = spacy.blank("en")
    ruler = pipeline.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "GPE", "pattern": "Oslo"}])
    (found,) = corpus_of("We met in Oslo.", spacy=pipeline)
    assert found.spans["entity GPE"] == ((10, 14),) and not found.parsed


def test_a_missing_pipeline_or_spacy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("spacy") is not None:
        with pytest.raises(InputError, match="spaCy has no pipeline 'no_such_pipeline'"):
            spacy_pipeline("no_such_pipeline")
    monkeypatch.setitem(sys.modules, "spacy", None)  # as if it were not installed
    with pytest.raises(MissingExtraError, match="spaCy needs an optional package"):
        spacy_pipeline("en_core_web_sm")
