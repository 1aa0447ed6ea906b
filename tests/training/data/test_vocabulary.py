"""The tokenizer of a run."""

from __future__ import annotations

import pytest

from clearhead.errors import InputError
from clearhead.training.data.vocabulary import VocabularySource, fitting_size, make_tokenizer


def test_vocabularies() -> None:
    texts = VocabularySource.of(["some words and other words"] * 3)
    assert make_tokenizer("bpe", texts, size=270).size == 270
    with pytest.raises(InputError, match="a vocabulary of 5000 is too large for these texts"):
        make_tokenizer("bpe", texts, size=5000)
    with pytest.raises(InputError, match="bpe, characters or a folder"):
        make_tokenizer("morse", texts)
    with pytest.raises(InputError, match="a vocabulary size is for bpe"):
        make_tokenizer("characters", texts, size=20)


def test_the_size_fits_the_length_of_the_texts() -> None:
    assert fitting_size(5) == 384
    assert fitting_size(256_000) == 1000
    assert fitting_size(10**7) == 8192
