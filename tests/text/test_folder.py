from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from clearhead.errors import CheckpointError
from clearhead.text import CharacterTokenizer, WordTokenizer, load_tokenizer

GOOD: dict[str, Any] = {
    "format": "clearhead vocabulary 1",
    "kind": "characters",
    "add_bos": False,
    "add_eos": False,
    "pieces": ["a", "b"],
}


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"tokenizer.json or vocabulary.json was wanted"):
        load_tokenizer(tmp_path)
    with pytest.raises(CheckpointError, match="it is no folder"):
        load_tokenizer(tmp_path / "absent")


def test_only_an_older_format(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.model").write_bytes(b"\x00")
    with pytest.raises(CheckpointError, match="older vocabulary format"):
        load_tokenizer(tmp_path)


def test_two_tokenizers(tmp_path: Path) -> None:
    CharacterTokenizer("ab").save(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(CheckpointError, match="holds two tokenizers"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "clearhead vocabulary 9"}, "says 'clearhead vocabulary 9'"),
        ({"kind": "syllables"}, "kind 'syllables' is unknown; there are characters and words"),
        ({"kind": 3}, "'kind' should be a str"),
        ({"pieces": "ab"}, "'pieces' should be a list"),
        ({"pieces": ["a", "a"]}, "names each piece once; 'a'"),
        ({"pieces": ["a", 7]}, "a piece should be a text, and is 7"),
        ({"pieces": ["a", ""]}, "at least one character"),
        ({"add_eos": 1}, "'add_eos' should be a bool"),
    ],
)
def test_broken_vocabulary(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    (tmp_path / "vocabulary.json").write_text(json.dumps(GOOD | change))
    with pytest.raises(CheckpointError, match=message):
        load_tokenizer(tmp_path)


def test_the_wrong_class(tmp_path: Path) -> None:
    CharacterTokenizer("ab").save(tmp_path)
    with pytest.raises(CheckpointError, match="a vocabulary of 'characters', not of 'words'"):
        WordTokenizer.from_file(tmp_path / "vocabulary.json")
