"""Texts as a model learns them: names of special tokens stay text, documents begin and end."""

from __future__ import annotations

import pytest

from clearhead.text.characters import CharacterTokenizer
from clearhead.text.subwords.training import train_bpe, train_unigram, train_wordpiece
from clearhead.text.tokenizer import Tokenizer
from clearhead.training.data.tokens.encoder import Encoder

TEXTS = ["the end of a text is <eos>, its beginning <bos>, and <pad> fills [MASK] [SEP] up. " * 5]
TOKENIZERS = {
    "bpe": train_bpe(TEXTS, 270, add_bos=True),
    "bpe, both ends": train_bpe(TEXTS, 270, add_bos=True, add_eos=True),
    "wordpiece": train_wordpiece(TEXTS, 90),
    "unigram": train_unigram(TEXTS, 60, add_eos=True),
    "characters": CharacterTokenizer.from_texts(TEXTS, add_bos=True),
}


@pytest.mark.parametrize("name", TOKENIZERS)
def test_names_of_special_tokens_stay_text(name: str) -> None:
    tokenizer = TOKENIZERS[name]
    encoder = Encoder(tokenizer)
    for special in ("<eos>", "<bos>", "<pad>", "[MASK]", "[SEP]", "[CLS]"):
        ids = encoder.encode([f"a {special} b"])[0].tolist()
        assert not set(ids) & (tokenizer.specials.all - {tokenizer.specials.unk}), special
    assert not set(encoder.encode(TEXTS)[0].tolist()) & (
        tokenizer.specials.all - {tokenizer.specials.unk}
    )


@pytest.mark.parametrize("name", TOKENIZERS)
def test_without_such_names_the_ids_are_the_tokenizers_own(name: str) -> None:
    tokenizer = TOKENIZERS[name]
    for text in ("the end of a text", "its  beginning,\n fills", ""):
        assert Encoder(tokenizer).document(text) == tokenizer.encode(text)


def test_the_tokenizer_itself_is_not_changed() -> None:
    tokenizer = TOKENIZERS["bpe"]
    Encoder(tokenizer)
    assert tokenizer.specials.eos in tokenizer.encode("<eos>")


def test_a_document_ends_once() -> None:
    for name, ends in (("bpe", True), ("bpe, both ends", True), ("unigram", True)):
        ids = Encoder(TOKENIZERS[name], ends=ends).document("a text")
        assert ids.count(_eos(TOKENIZERS[name])) == 1 and ids[-1] == _eos(TOKENIZERS[name])


def test_unknown_characters() -> None:
    encoder = Encoder(TOKENIZERS["characters"])
    assert encoder.unknown == 3
    assert encoder.encode(["a漢"])[0].tolist()[1] == 3


def _eos(tokenizer: Tokenizer) -> int:
    assert tokenizer.specials.eos is not None
    return tokenizer.specials.eos
