"""Plain text annotated by spaCy: parts of speech, relations, entities."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from clearhead.errors import InputError, MissingExtraError
from clearhead.explain.roles.corpus.recognisers import recognised
from clearhead.explain.roles.corpus.sentence import AnnotatedWord, Sentence, Span


def spacy_pipeline(name: str) -> Any:
    """Load a pipeline of spaCy by its name, such as "en_core_web_sm"."""
    try:
        import spacy  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise MissingExtraError("annotating plain text with spaCy", "nlp") from None
    try:
        return spacy.load(name)
    except OSError:
        raise InputError(
            f"spaCy has no pipeline {name!r} on this machine.",
            hint=f"python -m spacy download {name}",
        ) from None


def spacy_sentences(pipeline: Any, texts: Iterable[str]) -> Iterator[Sentence]:
    """Yield every text as spaCy annotates it; each text stays one sentence."""
    for document in pipeline.pipe(texts):
        yield sentence_of(document)


def sentence_of(document: Any) -> Sentence:
    """Convert a spaCy document to a sentence, without white space; roots have no relation."""
    tokens = [token for token in document if not token.is_space]
    number = {token.i: place for place, token in enumerate(tokens)}
    words = []
    for token in tokens:
        root = token.head.i == token.i or not token.dep_
        head = None if root else number.get(token.head.i)
        relation = "" if head is None else str(token.dep_)
        start = token.idx
        words.append(
            AnnotatedWord(token.text, start, start + len(token.text), token.pos_, head, relation)
        )
    spans: dict[str, tuple[Span, ...]] = recognised(document.text)
    for entity in document.ents:
        label = f"entity {entity.label_}"
        spans[label] = (*spans.get(label, ()), (entity.start_char, entity.end_char))
    return Sentence(document.text, tuple(words), spans)
