"""Sources of a corpus: files of several kinds, texts, any iterable of sentences."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from clearhead.errors import InputError
from clearhead.explain.roles.corpus.built_in_text import built_in_sentences
from clearhead.explain.roles.corpus.conllu import read_conllu
from clearhead.explain.roles.corpus.coreference_file import read_coreference
from clearhead.explain.roles.corpus.plain_text import read_text, sentences_in
from clearhead.explain.roles.corpus.recognisers import plain_sentence
from clearhead.explain.roles.corpus.sentence import Sentence
from clearhead.files.regular_file import regular_file_size

CorpusLike: TypeAlias = str | Path | Iterable[str | Sentence] | None
BUILT_IN = "built-in text"


@dataclass(frozen=True)
class Corpus:
    """Sentences that can be read once, or several times if ``again`` is True."""

    name: str
    read: Callable[[], Iterator[Sentence]]
    again: bool = True
    key: str = ""  # changes with the content, as far as that is known without reading it

    def __iter__(self) -> Iterator[Sentence]:
        return self.read()


def corpus_of(given: CorpusLike, *, spacy: str | Any = None) -> Corpus:
    """Make a corpus from a path, a text, or sentences; None is the built-in text.

    ``.conllu`` files bring their annotation, ``.tsv`` files coreference; everything else is plain
    text, annotated by ``spacy`` (the name of a pipeline, or one) if that is given.
    """
    if isinstance(given, Corpus):
        return given
    if given is None:
        return Corpus(BUILT_IN, built_in_sentences, key=BUILT_IN)
    if isinstance(given, Path) or (isinstance(given, str) and _is_path(given)):
        return _file(Path(given), spacy)
    if isinstance(given, str):
        texts = list(sentences_in(given.splitlines()))
        key = hashlib.blake2b(given.encode(), digest_size=8).hexdigest()
        return Corpus("the given text", lambda: _annotated(texts, spacy), key=key)
    if not isinstance(given, Iterable):
        raise InputError(
            "a corpus is a path, a text, or texts or sentences to go through; "
            f"{type(given).__name__} came."
        )
    once = iter(given) is given
    return Corpus("the given sentences", lambda: _mixed(given, spacy), again=not once)


def _is_path(text: str) -> bool:
    try:
        there = Path(text).exists()
    except (OSError, ValueError):  # too long for a path, or with a null character
        return False
    if not there and not any(mark.isspace() for mark in text):
        raise InputError(
            f"there is no file {text!r}.",
            hint="a corpus is a .conllu file, a .tsv of coreference, a text file, or a text.",
        )
    return there


def _file(path: Path, spacy: Any) -> Corpus:
    regular_file_size(path, "text", may_be_empty=True, error_kind=InputError)
    facts = path.stat()
    key = f"{path.resolve()} {facts.st_size} {facts.st_mtime_ns}"
    if path.suffix in (".conllu", ".conll"):
        return Corpus(path.name, lambda: read_conllu(path), key=key)
    if path.suffix == ".tsv":
        return Corpus(path.name, lambda: read_coreference(path), key=key)
    return Corpus(path.name, lambda: _annotated(read_text(path), spacy), key=f"{key} {spacy}")


def _mixed(given: Iterable[str | Sentence], spacy: Any) -> Iterator[Sentence]:
    for one in given:
        if isinstance(one, Sentence):
            yield one
        elif isinstance(one, str):
            yield from _annotated([one], spacy)
        else:
            raise InputError(f"a corpus gives texts or sentences; {type(one).__name__} came.")


def _annotated(texts: Iterable[str], spacy: Any) -> Iterator[Sentence]:
    if spacy is None:
        return map(plain_sentence, texts)
    from clearhead.explain.roles.corpus.spacy_text import spacy_pipeline, spacy_sentences

    pipeline = spacy_pipeline(spacy) if isinstance(spacy, str) else spacy
    return spacy_sentences(pipeline, texts)
