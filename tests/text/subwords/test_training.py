from __future__ import annotations

import pytest

from clearhead.errors import InputError
from clearhead.text import train_bpe, train_unigram, train_wordpiece
from tests.shared.gguf_metadata import SENTENCES
from tests.shared.varied_strings import varied_strings


def test_bpe_knows_every_text() -> None:
    tokenizer = train_bpe(iter(SENTENCES), 331)
    assert tokenizer.size == 331
    assert (tokenizer.specials.pad, tokenizer.specials.bos, tokenizer.specials.eos) == (0, 1, 2)
    for text in varied_strings(400):
        assert tokenizer.decode(tokenizer.encode(text), skip_special=False) == text


def test_bpe_merges_the_most_frequent_pair_first() -> None:
    tokenizer = train_bpe("ab ab ab ac", 261)
    assert [tokenizer.piece(id) for id in (259, 260)] == ["ab", "Ġab"]


def test_wordpiece_frames_its_texts() -> None:
    tokenizer = train_wordpiece(SENTENCES, 199)
    assert [token.text for token in tokenizer.tokens("The kids")] == [
        "[CLS]", "the", "kids", "[SEP]",
    ]  # fmt: skip
    assert tokenizer.specials.mask == 4
    assert tokenizer.decode(tokenizer.encode("The kids")) == "the kids"


def test_unigram_brings_spaces_back() -> None:
    tokenizer = train_unigram(SENTENCES, 151, add_bos=True, add_eos=True)
    ids = tokenizer.encode("the kids were")
    assert (ids[0], ids[-1]) == (1, 2)
    assert tokenizer.decode(ids) == "the kids were"


def test_sizes_that_cannot_be() -> None:
    with pytest.raises(InputError, match=r"size of this kind of vocabulary is 259 … .* 258 came"):
        train_bpe(SENTENCES, 258)
    with pytest.raises(InputError, match="cannot hold the different characters"):
        train_wordpiece(SENTENCES, 7)
    with pytest.raises(InputError, match=r"failed|cannot hold"):
        train_unigram(SENTENCES, 7)


def test_texts_that_are_none() -> None:
    for texts in ([], ["", ""], ""):
        with pytest.raises(InputError, match="trained on texts; these are empty"):
            train_bpe(texts, 300)
    with pytest.raises(InputError, match="lone surrogate"):
        train_bpe(["good", "bad \ud800"], 300)
