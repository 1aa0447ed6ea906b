"""Tokens of a text, by our tokenizers and by those of transformers."""

from __future__ import annotations

import pytest
import tokenizers

from clearhead.errors import InputError
from clearhead.text.characters import CharacterTokenizer
from clearhead.text.subwords.tokenizer import SubwordTokenizer
from clearhead.trace.passage import passage_of, passage_of_ids
from clearhead.trace.words import words_of
from tests.shared.synthetic import passage

TEXT = "unhappily the lions, ä!"


def byte_pairs() -> tokenizers.Tokenizer:
    """A byte-level BPE that knows a few merges and a token that it puts in front."""
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    merges = [("u", "n"), ("h", "a"), ("Ġ", "t"), ("h", "e"), ("Ġt", "he"), ("Ġ", "l"), ("i", "o")]
    pieces = ["<s>", *sorted(alphabet), *("".join(pair) for pair in merges)]
    model = tokenizers.models.BPE({piece: i for i, piece in enumerate(pieces)}, merges)
    made = tokenizers.Tokenizer(model)
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    made.add_special_tokens(["<s>"])
    made.post_processor = tokenizers.processors.TemplateProcessing(
        "<s> $A", special_tokens=[("<s>", 0)]
    )
    return made


def test_our_tokenizers() -> None:
    found = passage_of(SubwordTokenizer(byte_pairs(), names={"bos": "<s>"}), TEXT)
    assert found.tokens[0].special
    assert " the" in [token.text for token in found.tokens]
    words = [word.text for word in words_of(found)]
    assert words == ["<s>", "unhappily", "the", "lions", ",", " ", "ä", "!"]


def test_fast_tokenizers_of_transformers() -> None:
    transformers = pytest.importorskip("transformers")
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=byte_pairs(), bos_token="<s>")
    found = passage_of(fast, TEXT)
    ours = passage_of(SubwordTokenizer(byte_pairs(), names={"bos": "<s>"}), TEXT)
    assert [token.id for token in found.tokens] == fast(TEXT)["input_ids"]
    assert [(token.text, token.special) for token in found.tokens] == [
        (token.text, token.special) for token in ours.tokens
    ]
    assert [word.text for word in words_of(found)] == [word.text for word in words_of(ours)]


def test_from_ids_as_after_generation() -> None:
    tokenizer = SubwordTokenizer(byte_pairs(), names={"bos": "<s>"})
    ids = tokenizer.encode(TEXT)
    found = passage_of_ids(tokenizer, ids)
    assert [token.id for token in found.tokens] == ids
    assert found.text.endswith(TEXT)
    unusual = [id for piece in ("Ġ", "t", "h", "e") if (id := tokenizer.id(piece)) is not None]
    found = passage_of_ids(tokenizer, unusual)
    assert [token.text for token in found.tokens] == [" ", "t", "h", "e"]
    assert found.text == " the" and found.tokens[3].start == 3


def test_a_word_is_found_as_it_reads() -> None:
    found = passage("The| kids| un|do|[SEP]|The")
    assert found.positions("kids") == [[1]]
    assert found.positions(" kids") == [[1]]
    assert found.positions("The") == [[0], [5]]
    assert found.positions("undo") == [[2, 3]]
    assert found.positions("[SEP]") == [[4]]
    assert found.positions("kid") == found.positions("ndo") == found.positions("") == []
    assert found.positions("kids undo") == [[1, 2, 3]]


def test_what_is_no_tokenizer_is_refused() -> None:
    with pytest.raises(InputError, match=r"a fast one of transformers; dict came(.|\n)*use_fast"):
        passage_of({}, "text")
    with pytest.raises(InputError, match="lone surrogate"):
        passage_of(CharacterTokenizer.from_texts(["a"]), "\ud800")
