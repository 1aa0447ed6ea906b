from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from clearhead.errors import CheckpointError, InputError
from clearhead.text import (
    SubwordTokenizer,
    Token,
    load_tokenizer,
    tokenizer_from_gguf,
    train_bpe,
    train_unigram,
    train_wordpiece,
)
from tests.shared.gguf_metadata import SENTENCES, sentencepiece_metadata
from tests.shared.varied_strings import varied_strings

TEXTS = varied_strings()
KINDS = {
    "bytes": train_bpe(SENTENCES, 421, add_bos=True, add_eos=True),
    "llama": tokenizer_from_gguf(sentencepiece_metadata()),
    "wordpiece": train_wordpiece(SENTENCES, 199),
    "unigram": train_unigram(SENTENCES, 151, add_eos=True),
}


@pytest.fixture(params=KINDS)
def tokenizer(request: pytest.FixtureRequest) -> SubwordTokenizer:
    return KINDS[request.param]


def test_spans_are_ordered_and_inside(tokenizer: SubwordTokenizer) -> None:
    for text in TEXTS:
        tokens = tokenizer.tokens(text)
        assert tokenizer.encode(text) == [token.id for token in tokens]
        starts, ends = [t.start for t in tokens], [t.end for t in tokens]
        assert starts == sorted(starts)
        assert ends == sorted(ends)
        assert all(0 <= token.start <= token.end <= len(text) for token in tokens)


def test_spans_cover_what_is_not_dropped(tokenizer: SubwordTokenizer) -> None:
    drops = tokenizer is KINDS["wordpiece"]  # white space, accents and control characters
    for text in TEXTS:
        covered = {place for t in tokenizer.tokens(text) for place in range(t.start, t.end)}
        bare = [place for place in range(len(text)) if place not in covered]
        assert not any(text[place].isalnum() for place in bare)
        assert drops or not bare


def test_a_character_over_several_tokens() -> None:
    tokens = KINDS["bytes"].tokens("a🎉", special=False)
    assert [(token.text, token.start, token.end) for token in tokens] == [
        ("a", 0, 1), ("<0xF0>", 1, 2), ("<0x9F>", 1, 2), ("<0x8E>", 1, 2), ("<0x89>", 1, 2),
    ]  # fmt: skip


def test_special_tokens_added_and_written() -> None:
    tokens = KINDS["bytes"].tokens("a<eos>")
    assert tokens[0] == Token(1, "<bos>", 0, 0, special=True)
    assert tokens[2] == Token(2, "<eos>", 1, 6, special=True)
    assert tokens[3] == Token(2, "<eos>", 6, 6, special=True)
    assert KINDS["bytes"].decode([t.id for t in tokens]) == "a"


def test_an_unknown_word_is_not_special() -> None:
    token = KINDS["wordpiece"].tokens("☃")[1]
    assert (token.text, token.start, token.end, token.special) == ("[UNK]", 0, 1, False)


def test_pieces_and_ids(tokenizer: SubwordTokenizer) -> None:
    assert all(tokenizer.id(tokenizer.piece(id)) == id for id in range(tokenizer.size))
    assert tokenizer.id("no such piece") is None


def test_saved_and_read_by_us_and_by_transformers(
    tokenizer: SubwordTokenizer, tmp_path: Path
) -> None:
    tokenizer.chat_template = "{{ messages[0].content }}"
    tokenizer.save(tmp_path)
    again = load_tokenizer(tmp_path)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    assert again.specials == tokenizer.specials
    assert again.chat_template == theirs.chat_template == tokenizer.chat_template
    assert theirs.eos_token_id == tokenizer.specials.eos
    for text in TEXTS[:200]:
        assert again.tokens(text) == tokenizer.tokens(text)
        assert theirs(text)["input_ids"] == tokenizer.encode(text)
    assert {p.name for p in tmp_path.iterdir()} == {"tokenizer.json", "tokenizer_config.json"}


def test_truncation_padding_and_trimmed_spans_are_off(tmp_path: Path) -> None:
    KINDS["bytes"].save(tmp_path)
    path = tmp_path / "tokenizer.json"
    content = json.loads(path.read_text())
    content["truncation"] = {
        "direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0,
    }  # fmt: skip
    content["padding"] = {
        "strategy": {"Fixed": 50}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0,
        "pad_type_id": 0, "pad_token": "<pad>",
    }  # fmt: skip
    content["post_processor"] = {
        "type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True,
    }  # fmt: skip
    path.write_text(json.dumps(content))
    tokens = SubwordTokenizer.from_file(path).tokens("the kids were scared")
    assert [(t.text, t.start, t.end) for t in tokens[:2]] == [("the", 0, 3), (" kids", 3, 8)]
    assert tokens[-1].end == 20


def test_names_from_the_older_file_and_as_objects(tmp_path: Path) -> None:
    KINDS["bytes"].save(tmp_path)
    (tmp_path / "tokenizer_config.json").unlink()
    names = {"eos_token": {"content": "<eos>", "lstrip": False}, "mask_token": "absent"}
    (tmp_path / "special_tokens_map.json").write_text(json.dumps(names))
    specials = load_tokenizer(tmp_path).specials
    assert (specials.eos, specials.bos, specials.mask) == (2, None, None)


def test_a_name_that_is_a_plain_piece_becomes_special(tmp_path: Path) -> None:
    KINDS["bytes"].save(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text('{"eos_token": "the"}')
    again = load_tokenizer(tmp_path)
    assert again.specials.eos in again.specials.all
    assert again.size == KINDS["bytes"].size
    assert again.decode(again.encode("a the")) == "a "


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"chat_template": "plain"}, "plain"),
        ({"chat_template": [{"name": "default", "template": "one"}, {"name": "tool"}]}, "one"),
        ({"chat_template": [{"name": "tool", "template": "x"}]}, None),
        ({"chat_template": 3}, None),
    ],
)
def test_chat_templates_of_a_folder(tmp_path: Path, config: Any, expected: str | None) -> None:
    KINDS["bytes"].save(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    assert load_tokenizer(tmp_path).chat_template == expected
    (tmp_path / "chat_template.jinja").write_text("from its own file")
    assert load_tokenizer(tmp_path).chat_template == "from its own file"


def test_ids_and_texts_that_are_none(tokenizer: SubwordTokenizer) -> None:
    with pytest.raises(InputError, match=f"token id {tokenizer.size} is not in this vocabulary"):
        tokenizer.decode([tokenizer.size])
    with pytest.raises(InputError, match="token id -1"):
        tokenizer.piece(-1)
    with pytest.raises(InputError, match="lone surrogate"):
        tokenizer.tokens("\udcff")


def edit(*path: str | int, to: Any) -> Callable[[dict[str, Any]], None]:
    def change(content: Any) -> None:
        for step in path[:-1]:
            content = content[step]
        content[path[-1]] = to

    return change


def write(folder: Path, change: Callable[[dict[str, Any]], None], kind: str) -> Path:
    KINDS[kind].save(folder)
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("bytes", edit("model", to=None), "'model' should describe BPE"),
        ("bytes", edit("model", to=[1]), "'model' should describe BPE"),
        ("bytes", edit("model", "vocab", to=3), "'model.vocab' should be an object or a list"),
        ("bytes", edit("model", "vocab", "a", to=-1), "id of 'a' should be a whole number"),
        ("bytes", edit("model", "vocab", "a", to="x"), "id of 'a' should be a whole number"),
        ("bytes", edit("model", "vocab", "a", to=2**31), "below 4,194,304, and is 2147483648"),
        ("bytes", edit("model", "vocab", "a", to=5), "the id 5 is given to 2 pieces"),
        ("bytes", edit("model", "merges", 0, to=["a", "zzz"]), "reading .* failed: .*zzz"),
        ("bytes", edit("model", "merges", to=7), "reading .* failed"),
        ("bytes", edit("model", "type", to="Magic"), "reading .* failed"),
        ("bytes", edit("added_tokens", to={"a": 1}), "reading .* failed"),
        ("bytes", edit("added_tokens", 0, "content", to=7), "reading .* failed"),
        ("bytes", edit("added_tokens", 0, "id", to=99), "'<pad>' should have the id 99"),
        ("bytes", edit("pre_tokenizer", to={"type": "Nothing"}), "reading .* failed"),
        (
            "bytes",
            edit("pre_tokenizer", to={
                "type": "Split", "pattern": {"Regex": "(["}, "behavior": "Isolated",
                "invert": False,
            }),
            "reading .* failed",
        ),
        ("bytes", edit("post_processor", to=[]), "reading .* failed"),
        ("wordpiece", edit("model", "unk_token", to="[NO]"), r"unknown token '\[NO\]' is not in"),
        ("unigram", edit("model", "vocab", 5, to=["a"]), r"list of \[piece, score\]; \['a'\] came"),
        ("unigram", edit("model", "vocab", 5, to=["a", "b"]), r"list of \[piece, score\]"),
        ("unigram", edit("model", "unk_id", to=10**6), "reading .* failed"),
        ("unigram", edit("normalizer", to={
            "type": "Precompiled", "precompiled_charsmap": "AAAA",
        }), "the character map .* is broken"),
        ("unigram", edit("normalizer", to={
            "type": "Sequence", "normalizers": [{"type": "Precompiled"}],
        }), "the character map .* is broken"),
    ],
)  # fmt: skip
def test_broken_files(
    tmp_path: Path, kind: str, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    path = write(tmp_path, change, kind)
    with pytest.raises(CheckpointError, match=message):
        SubwordTokenizer.from_file(path)


def test_every_truncation_is_an_error(tmp_path: Path) -> None:
    KINDS["wordpiece"].save(tmp_path)
    path = tmp_path / "tokenizer.json"
    whole = path.read_bytes()
    for length in range(0, len(whole) - 1, len(whole) // 60):
        path.write_bytes(whole[:length])
        with pytest.raises(CheckpointError, match="is empty" if length == 0 else "not valid JSON"):
            SubwordTokenizer.from_file(path)


def test_a_vocabulary_without_unknown_fails_with_words(tmp_path: Path) -> None:
    path = write(tmp_path, edit("model", "unk_id", to=None), "unigram")
    with pytest.raises(CheckpointError, match=r"encoding failed: .*unk_id"):
        SubwordTokenizer.from_file(path).encode("☃")


def test_a_gap_in_the_vocabulary(tmp_path: Path) -> None:
    path = write(tmp_path, edit("model", "vocab", "~", to=700), "bytes")
    with pytest.raises(InputError, match="is a gap in this vocabulary"):
        tokenizer = SubwordTokenizer.from_file(path)
        assert tokenizer.size == 701
        tokenizer.piece(600)
