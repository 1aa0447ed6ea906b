from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from clearhead.errors import CheckpointError, InputError
from clearhead.text.characters import CharacterTokenizer
from clearhead.text.vocabulary import FORMAT, read_vocabulary
from clearhead.text.words import WordTokenizer


def test_ids_begin_after_the_special_tokens() -> None:
    tokenizer = CharacterTokenizer(["b", "a"], add_bos=True, add_eos=True)
    assert tokenizer.size == 6
    assert tokenizer.encode("ab?") == [1, 5, 4, 3, 2]
    assert tokenizer.encode("ab?", special=False) == [5, 4, 3]
    assert tokenizer.decode([1, 5, 4, 3, 2]) == "ab\N{REPLACEMENT CHARACTER}"
    assert tokenizer.decode([1, 5], skip_special=False) == "<bos>a"
    assert (tokenizer.piece(4), tokenizer.id("b"), tokenizer.id("<eos>")) == ("b", 4, 2)
    assert tokenizer.id("c") is None


def test_pieces_of_texts_are_sorted() -> None:
    assert CharacterTokenizer.from_texts(["ba", "cab"]).encode("abc") == [4, 5, 6]
    assert WordTokenizer.from_texts("b a b").encode("a b") == [4, 5]


def test_spans_of_added_tokens_are_empty() -> None:
    tokenizer = CharacterTokenizer("ab", add_bos=True, add_eos=True)
    spans = [(token.start, token.end, token.special) for token in tokenizer.tokens("ab")]
    assert spans == [(0, 0, True), (0, 1, False), (1, 2, False), (2, 2, True)]


def test_bad_pieces() -> None:
    with pytest.raises(InputError, match="at least one character"):
        CharacterTokenizer(["a", ""])
    with pytest.raises(InputError, match="'a' is there 2 times"):
        CharacterTokenizer(["a", "b", "a"])


def test_saved_and_read(tmp_path: Path) -> None:
    CharacterTokenizer("é", add_eos=True).save(tmp_path)
    path = tmp_path / "vocabulary.json"
    assert CharacterTokenizer.from_file(path).encode("é") == [4, 2]
    with pytest.raises(CheckpointError, match="a vocabulary of 'characters', not of 'words'"):
        WordTokenizer.from_file(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other 1"}, "should say format"),
        ({"pieces": "ab"}, "'pieces' should be a list"),
        ({"add_bos": 1}, "'add_bos' should be a bool"),
        ({"pieces": ["a", 7]}, "a piece should be a text, and is 7"),
        ({"pieces": ["a", "a"]}, "'a' is there 2 times"),
    ],
)
def test_broken_files(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    good = {"format": FORMAT, "kind": "characters", "pieces": ["a"], "add_bos": True}
    path = tmp_path / "vocabulary.json"
    path.write_text(json.dumps(good | {"add_eos": False} | change))
    with pytest.raises(CheckpointError, match=message):
        CharacterTokenizer.from_file(path)


def test_the_checked_content(tmp_path: Path) -> None:
    WordTokenizer(["a"]).save(tmp_path)
    assert read_vocabulary(tmp_path / "vocabulary.json")["kind"] == "words"
