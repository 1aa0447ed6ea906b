from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from clearhead.errors import CheckpointError
from clearhead.text.subwords.file import (
    LARGEST_VOCABULARY,
    check_added,
    check_charsmap,
    check_subword_file,
    read_settings,
    settings_of,
)


def content(**model: Any) -> dict[str, Any]:
    return {"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}} | model}


def test_settings_from_several_files(tmp_path: Path) -> None:
    assert read_settings(tmp_path).names == {}
    (tmp_path / "special_tokens_map.json").write_text(
        json.dumps({"bos_token": {"content": "<s>"}, "eos_token": "old"})
    )
    settings = {"eos_token": "</s>", "pad_token": None, "chat_template": "A"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    found = read_settings(tmp_path)
    assert (found.names, found.chat_template) == ({"bos": "<s>", "eos": "</s>"}, "A")
    (tmp_path / "chat_template.jinja").write_text("B")
    assert read_settings(tmp_path).chat_template == "B"


def test_one_of_several_templates_and_bad_names() -> None:
    several = [{"name": "tools", "template": "T"}, {"name": "default", "template": "D"}]
    assert settings_of({"chat_template": several}, where="x").chat_template == "D"
    odd = [{"name": {}, "template": "T"}, 5, {"template": "U"}]
    assert settings_of({"chat_template": odd}, where="x").chat_template is None
    with pytest.raises(CheckpointError, match="x: bos_token should be a text, and is 7"):
        settings_of({"bos_token": 7}, where="x")


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({}, "'model' should describe BPE"),
        (content(vocab=7), "'model.vocab' should be an object or a list"),
        (content(vocab={"a": -1}), "id of 'a' should be a whole number"),
        (content(vocab={"a": LARGEST_VOCABULARY}), "should be a whole number below"),
        (content(vocab={"a": True}), "and is True"),
        (content(vocab={"a": 0, "b": 0}), "the id 0 is given to 2 pieces"),
        (content(vocab=[["a", "b"]]), r"a list of \[piece, score\]"),
        (content(type="WordPiece", unk_token="[UNK]"), r"unknown token '\[UNK\]' is not in"),
        (content() | {"normalizer": {"type": "Precompiled"}}, "character map"),
    ],
)
def test_contents_that_are_refused(bad: dict[str, Any], message: str) -> None:
    with pytest.raises(CheckpointError, match=f"where: .*{message}"):
        check_subword_file(bad, where="where")


def test_character_maps() -> None:
    whole = (4).to_bytes(4, "little") + bytes(4) + b"text\0"
    check_charsmap(whole, where="x")
    normalizer = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(whole).decode()}
    nested = {"type": "Sequence", "normalizers": [normalizer]}
    check_subword_file(content() | {"normalizer": nested}, where="x")
    for broken in (b"", whole[:6], whole[:8] + b"\xff", (3).to_bytes(4, "little") + bytes(9)):
        with pytest.raises(CheckpointError, match="precompiled_charsmap"):
            check_charsmap(broken, where="x")


def test_added_tokens_with_other_ids() -> None:
    added = {"added_tokens": [{"content": "<s>", "id": 5}]}
    check_added(added, {"<s>": 5}.get, where="x")
    with pytest.raises(CheckpointError, match=r"should have the id 5, and .* makes that 2"):
        check_added(added, {"<s>": 2}.get, where="x")


@pytest.mark.parametrize("kind", ["BPE", "WordPiece", "Unigram"])
@pytest.mark.parametrize("unknown", [{"content": "a"}, ["a"], 5, True])
def test_an_unknown_token_that_is_no_text(kind: str, unknown: Any) -> None:
    with pytest.raises(CheckpointError, match="x: unk_token should be a text, and is"):
        check_subword_file(content(type=kind, unk_token=unknown), where="x")
