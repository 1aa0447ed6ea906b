"""Vocabularies of characters, as `transformers` opens them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import transformers

from clearhead.errors import CheckpointError
from clearhead.text import CharacterTokenizer, load_tokenizer
from tests.shared.varied_strings import varied_strings

TEXTS = [
    "to be, or not to be",
    "a\n\tb  c ",
    "<eos> is <bos>text<pad>",
    "",
    "ünknown ☃ 漢",
    "e\u0301",
]


@pytest.mark.parametrize("add_bos", [False, True])
@pytest.mark.parametrize("add_eos", [False, True])
def test_transformers_gives_the_same_ids(tmp_path: Path, add_bos: bool, add_eos: bool) -> None:
    ours = CharacterTokenizer.from_texts(TEXTS[:4], add_bos=add_bos, add_eos=add_eos)
    ours.save(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "qwen3"}')  # as a trained model has it
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for text in TEXTS + varied_strings(50):
        assert theirs(text)["input_ids"] == ours.encode(text), text
        if not ({3} & set(ours.encode(text))):
            assert theirs.decode(ours.encode(text), skip_special_tokens=True) == text
    for name in ("pad", "bos", "eos", "unk"):
        assert getattr(theirs, f"{name}_token_id") == getattr(ours.specials, name)


def test_another_file_beside_the_vocabulary_is_refused(tmp_path: Path) -> None:
    CharacterTokenizer("abc").save(tmp_path)
    assert load_tokenizer(tmp_path).size == 7
    content = json.loads((tmp_path / "tokenizer.json").read_text())
    content["model"]["vocab"]["a"] = 5
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(CheckpointError, match="holds two tokenizers"):
        load_tokenizer(tmp_path)
