from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearhead.errors import InputError
from clearhead.text import CharacterTokenizer, Token, load_tokenizer
from tests.shared.varied_strings import varied_strings


def test_the_vocabulary_of_a_text() -> None:
    tokenizer = CharacterTokenizer.from_texts("hello")
    assert tokenizer.size == 4 + 4
    assert [tokenizer.piece(id) for id in range(8)] == [
        "<pad>", "<bos>", "<eos>", "<unk>", "e", "h", "l", "o",
    ]  # fmt: skip
    assert tokenizer.encode("hole") == [5, 7, 6, 4]
    assert tokenizer.tokens("he")[1] == Token(4, "e", 1, 2)
    assert (tokenizer.id("h"), tokenizer.id("z"), tokenizer.id("<eos>")) == (5, None, 2)


@given(st.text(st.characters(codec="utf-8")))
def test_every_text_comes_back(text: str) -> None:
    tokenizer = CharacterTokenizer.from_texts(text)
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_unknown_characters_are_seen_as_such() -> None:
    tokenizer = CharacterTokenizer("ab")
    assert tokenizer.encode("axb") == [4, 3, 5]
    assert tokenizer.tokens("axb")[1] == Token(3, "x", 1, 2)
    assert tokenizer.decode([4, 3, 5]) == "a\ufffdb"


def test_ends_are_added_on_request() -> None:
    tokenizer = CharacterTokenizer("ab", add_bos=True, add_eos=True)
    assert tokenizer.encode("ab") == [1, 4, 5, 2]
    assert tokenizer.encode("ab", special=False) == [4, 5]
    assert tokenizer.tokens("ab")[-1] == Token(2, "<eos>", 2, 2, special=True)
    assert tokenizer.tokens("")[-1] == Token(2, "<eos>", 0, 0, special=True)
    assert tokenizer.decode([1, 4, 2]) == "a"
    assert tokenizer.decode([1, 4, 2], skip_special=False) == "<bos>a<eos>"


def test_special_names_in_a_text_are_characters() -> None:
    tokenizer = CharacterTokenizer.from_texts("<eos>")
    assert tokenizer.specials.eos not in tokenizer.encode("<eos>")


def test_saved_and_read_again(tmp_path: Path) -> None:
    texts = varied_strings(300)
    tokenizer = CharacterTokenizer.from_texts(texts, add_eos=True)
    tokenizer.save(tmp_path)
    again = load_tokenizer(tmp_path)
    assert isinstance(again, CharacterTokenizer)
    assert all(again.tokens(text) == tokenizer.tokens(text) for text in texts)
    for_others = ["tokenizer.json", "tokenizer_config.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [*for_others, "vocabulary.json"]


def test_a_piece_twice() -> None:
    with pytest.raises(InputError, match="names each piece once; 'a' is there 2 times"):
        CharacterTokenizer("aba")
    with pytest.raises(InputError, match="at least one character"):
        CharacterTokenizer(["a", ""])
