"""Corpora: sentences from several sources, with what is known about their words.

The order in which to read the modules:

===============================================  ================================================
``sentence``                                     a sentence with its words, spans and coreference
``plain_text``, ``recognisers``                  plain text; dates, numbers and names by spelling
``conllu``, ``coreference_file``, ``cells``      annotated files, and the numbers in their cells
``spacy_text``                                   plain text annotated by spaCy
``built_in_text``                                sentences that need no file
``sources``                                      the one function that takes any of these
``rarity``                                       word counts of a corpus
``tokenised``                                    a sentence with the tokens of a model
===============================================  ================================================
"""

from typing import TYPE_CHECKING

from clearhead.lazy import lazy

if TYPE_CHECKING:
    from clearhead.explain.roles.corpus.sentence import AnnotatedWord as AnnotatedWord
    from clearhead.explain.roles.corpus.sentence import Sentence as Sentence
    from clearhead.explain.roles.corpus.sources import Corpus as Corpus
    from clearhead.explain.roles.corpus.sources import CorpusLike as CorpusLike
    from clearhead.explain.roles.corpus.sources import corpus_of as corpus_of
    from clearhead.explain.roles.corpus.tokenised import TokenisedSentence as TokenisedSentence
    from clearhead.explain.roles.corpus.tokenised import Unit as Unit

_HOMES = {
    "AnnotatedWord": "clearhead.explain.roles.corpus.sentence",
    "Corpus": "clearhead.explain.roles.corpus.sources",
    "CorpusLike": "clearhead.explain.roles.corpus.sources",
    "Sentence": "clearhead.explain.roles.corpus.sentence",
    "TokenisedSentence": "clearhead.explain.roles.corpus.tokenised",
    "Unit": "clearhead.explain.roles.corpus.tokenised",
    "corpus_of": "clearhead.explain.roles.corpus.sources",
}
__all__ = list(_HOMES)
__getattr__, __dir__ = lazy(__name__, _HOMES)
