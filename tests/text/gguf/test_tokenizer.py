from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Regex, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from clearhead.errors import CheckpointError
from clearhead.text import (
    SubwordTokenizer,
    load_tokenizer,
    tokenizer_from_gguf,
    train_bpe,
    train_unigram,
    train_wordpiece,
)
from clearhead.text.gguf.splits import TEXT_SPLITS
from tests.shared.gguf_metadata import (
    SENTENCES,
    USER_DEFINED,
    byte_level_metadata,
    sentencepiece_metadata,
    unigram_metadata,
    wordpiece_metadata,
)
from tests.shared.varied_strings import varied_strings

TEXTS = varied_strings(1000)


@pytest.fixture(scope="module")
def bpe() -> SubwordTokenizer:
    return train_bpe(SENTENCES, 421)


def reference(tokenizer: SubwordTokenizer) -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer.backend)


def assert_same(ours: SubwordTokenizer, theirs: Any, texts: list[str] = TEXTS) -> None:
    for text in texts:
        encoding = theirs(text, return_offsets_mapping=True)
        tokens = ours.tokens(text)
        assert [token.id for token in tokens] == encoding["input_ids"], text
        for token, (start, end) in zip(tokens, encoding["offset_mapping"], strict=True):
            added = start == end == 0 and token.special
            assert added or (token.start, token.end) == (start, end), text


def test_byte_level_equals_the_tokenizer_it_was_made_of(bpe: SubwordTokenizer) -> None:
    ours = tokenizer_from_gguf(byte_level_metadata(bpe))
    assert_same(ours, reference(bpe))
    assert all(ours.decode(ours.encode(text), skip_special=False) == text for text in TEXTS)


def test_smollm_cuts_digits_apart_first(bpe: SubwordTokenizer) -> None:
    ours = tokenizer_from_gguf(byte_level_metadata(bpe, "smollm"))
    gpt2 = tokenizer_from_gguf(byte_level_metadata(bpe, "gpt-2"))
    theirs = reference(bpe)
    theirs.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(False)]
    )
    assert_same(ours, theirs)
    assert [token.text for token in ours.tokens("a  12")] == ["a", "  ", "1", "2"]
    assert [token.text for token in gpt2.tokens("a  12")] == ["a", " ", " 12"]


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("gpt-2", "It|'s|  | 1234|!?|\n|\n|OK|'|LL"),
        ("smollm", "It|'s|   |1|2|3|4|!?|\n|\n|OK|'|LL"),
        ("llama-bpe", "It|'s|  | |123|4|!?\n\n|OK|'LL"),
        ("qwen2", "It|'s|  | |1|2|3|4|!?\n\n|OK|'LL"),
        ("default", "It|'|s|  | |123|4|!?|\n|\n|OK|'|LL"),
    ],
)
def test_each_rule_cuts_as_its_family_does(name: str, parts: str) -> None:
    rules = [pre_tokenizers.Split(Regex(p), "isolated") for p in TEXT_SPLITS[name].patterns]
    text = "It's   1234!?\n\nOK'LL"
    found = pre_tokenizers.Sequence(rules).pre_tokenize_str(text)
    assert [text[start:end] for _, (start, end) in found] == parts.split("|")


def test_an_unknown_rule_is_named(bpe: SubwordTokenizer) -> None:
    with pytest.raises(CheckpointError, match=r"rule 'klingon'.*unknown here; known: default, gpt"):
        tokenizer_from_gguf(byte_level_metadata(bpe, "klingon"))


def test_qwen_composes_characters_first(bpe: SubwordTokenizer) -> None:
    ours = tokenizer_from_gguf(byte_level_metadata(bpe, "qwen2"))
    assert ours.encode("e\u0301") == ours.encode("é")


def test_llama_takes_known_words_whole(bpe: SubwordTokenizer) -> None:
    metadata = byte_level_metadata(bpe, "llama-bpe")
    metadata["tokenizer.ggml.tokens"].append("zqx")
    metadata["tokenizer.ggml.token_type"].append(1)
    del metadata["tokenizer.ggml.add_bos_token"]
    assert [token.text for token in tokenizer_from_gguf(metadata).tokens("zqx")] == ["<bos>", "zqx"]


def by_score(metadata: dict[str, Any], text: str) -> list[str]:
    """SentencePiece's own rule, written the slow way: merge the best pair, leftmost first."""
    scores = dict(
        zip(metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.scores"], strict=True)
    )
    pieces = list(("▁" + text.replace(" ", "▁")) if text else "")
    while True:
        pairs = [
            (-scores[left + right], place)
            for place, (left, right) in enumerate(pairwise(pieces))
            if left + right in scores
        ]
        if not pairs:
            break
        place = min(pairs)[1]
        pieces[place : place + 2] = ["".join(pieces[place : place + 2])]
    return [
        part
        for piece in pieces
        for part in ([piece] if piece in scores else [f"<0x{b:02X}>" for b in piece.encode()])
    ]


def test_sentencepiece_merges_by_score() -> None:
    metadata = sentencepiece_metadata()
    ours = tokenizer_from_gguf(metadata)
    plain = [text for text in TEXTS if not any(s in text for s in ("<s>", "</s>", "<unk>", "<0x"))]
    assert len(plain) > 950
    for text in plain:
        assert [ours.piece(id) for id in ours.encode(text)] == ["<s>", *by_score(metadata, text)]
        assert ours.decode(ours.encode(text)) == text.replace("▁", " ")


def test_sentencepiece_without_prefix_space() -> None:
    metadata = sentencepiece_metadata() | {"tokenizer.ggml.add_space_prefix": False}
    ours = tokenizer_from_gguf(metadata)
    assert [token.text for token in ours.tokens("the kids")] == ["<s>", "the", " kids"]
    assert ours.decode(ours.encode(" the")) == " the"


def test_sentencepiece_shows_bytes_and_spaces_as_text() -> None:
    ours = tokenizer_from_gguf(sentencepiece_metadata())
    shown = [(token.text, token.start, token.end) for token in ours.tokens("kids\n你")]
    assert shown == [
        ("<s>", 0, 0),
        (" kids", 0, 4),
        ("\n", 4, 5),
        ("<0xE4>", 5, 6),
        ("<0xBD>", 5, 6),
        ("<0xA0>", 5, 6),
    ]


def test_wordpiece_equals_the_tokenizer_it_was_made_of() -> None:
    trained = train_wordpiece(SENTENCES, 199)
    ours = tokenizer_from_gguf(wordpiece_metadata(trained))
    assert_same(ours, reference(trained))
    assert ours.specials == trained.specials


def test_a_cased_wordpiece_vocabulary_keeps_its_case() -> None:
    trained = train_wordpiece([text.title() for text in SENTENCES], 199, lowercase=False)
    assert_same(tokenizer_from_gguf(wordpiece_metadata(trained)), reference(trained))


def test_unigram_equals_the_tokenizer_it_was_made_of() -> None:
    trained = train_unigram(SENTENCES, 151, add_eos=True)
    assert_same(tokenizer_from_gguf(unigram_metadata(trained)), reference(trained))


def test_unigram_squeezes_white_space_unless_told() -> None:
    metadata = unigram_metadata(train_unigram(SENTENCES, 151))
    del metadata["tokenizer.ggml.remove_extra_whitespaces"]
    ours = tokenizer_from_gguf(metadata)
    assert ours.encode("the   kids ") == ours.encode("the kids")


def test_user_defined_tokens_are_found_whole(bpe: SubwordTokenizer) -> None:
    metadata = byte_level_metadata(bpe)
    metadata["tokenizer.ggml.tokens"].append("<think>")
    metadata["tokenizer.ggml.token_type"].append(USER_DEFINED)
    ours = tokenizer_from_gguf(metadata)
    assert [token.text for token in ours.tokens("a<think>b")] == ["a", "<think>", "b"]
    assert ours.decode(ours.encode("a<think>b")) == "a<think>b"


def test_the_ends_are_added_as_the_file_says(bpe: SubwordTokenizer) -> None:
    flags = {"tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.add_eos_token": True}
    ours = tokenizer_from_gguf(byte_level_metadata(bpe) | flags)
    ids = ours.encode("kids")
    assert (ids[0], ids[-1]) == (ours.specials.bos, ours.specials.eos)
    assert ours.encode("kids", special=False) == ids[1:-1]


def test_it_is_saved_and_read_again(bpe: SubwordTokenizer, tmp_path: Path) -> None:
    template = {"tokenizer.chat_template": "{{ messages }}"}
    for metadata in (byte_level_metadata(bpe, "smollm"), sentencepiece_metadata()):
        ours = tokenizer_from_gguf(metadata | template)
        ours.save(tmp_path)
        again = load_tokenizer(tmp_path)
        assert again.specials == ours.specials
        assert again.chat_template == "{{ messages }}"
        assert all(again.tokens(text) == ours.tokens(text) for text in TEXTS[:300])


def spoil(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda metadata: metadata.update({f"tokenizer.ggml.{k}": v for k, v in changes.items()})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (spoil(model="rwkv"), "kind 'rwkv'.*known: gpt2, llama, bert, t5"),
        (spoil(model=None), "no tokenizer.ggml.model"),
        (spoil(model=7), "model should be a str, and is 7"),
        (spoil(tokens="abc"), "tokens should be a list"),
        (spoil(tokens=[]), "has 0 entries"),
        (spoil(tokens=["a", 7]), "list of str; entry 1 is 7"),
        (spoil(tokens=["a", "b", "a"]), "the entry 'a' 2 times"),
        (spoil(token_type=[1, 1]), r"one entry for each of the 421 tokens, and has 2"),
        (spoil(token_type=["x"] * 421), "list of int; entry 0 is 'x'"),
        (spoil(merges=["a zzz"]), r"merge 'a zzz'.*not there: \['zzz', 'azzz'\]"),
        (spoil(merges=["abc"]), r"merge 'abc'.*two entries"),
        (spoil(merges=["a b c"]), "merge 'a b c'"),
        (spoil(merges=[3]), "list of str; entry 0 is 3"),
        (spoil(bos_token_id=421), "bos_token_id is 421, outside the vocabulary of 421"),
        (spoil(eos_token_id=-1), "eos_token_id is -1"),
        (spoil(eos_token_id=True), "eos_token_id should be a int, and is True"),
        (spoil(add_bos_token="yes"), "add_bos_token should be a bool"),
    ],
)
def test_broken_metadata(
    bpe: SubwordTokenizer, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    metadata = byte_level_metadata(bpe)
    change(metadata)
    with pytest.raises(CheckpointError, match=message):
        tokenizer_from_gguf(metadata)


def test_scores_of_the_wrong_length() -> None:
    metadata = sentencepiece_metadata() | {"tokenizer.ggml.scores": [0.0]}
    with pytest.raises(CheckpointError, match=r"scores should have one entry for each .* has 1"):
        tokenizer_from_gguf(metadata)


def test_bos_wanted_and_not_named(bpe: SubwordTokenizer) -> None:
    metadata = byte_level_metadata(bpe) | {"tokenizer.ggml.add_bos_token": True}
    del metadata["tokenizer.ggml.bos_token_id"]
    with pytest.raises(CheckpointError, match="adds bos to texts and does not say its id"):
        tokenizer_from_gguf(metadata)


def test_bert_without_its_special_tokens() -> None:
    metadata = {"tokenizer.ggml.model": "bert", "tokenizer.ggml.tokens": ["▁a", "b"]}
    with pytest.raises(CheckpointError, match=r"has no \[UNK\]"):
        tokenizer_from_gguf(metadata)


@pytest.mark.parametrize(
    "charsmap", [[1, 2, 3], [255] * 40, [0, 0, 0, 127, 5], [4, 0, 0, 0, 1, 1, 1, 1, 255]]
)
def test_a_broken_character_map_is_an_error(charsmap: list[int]) -> None:
    metadata = unigram_metadata(train_unigram(SENTENCES, 151))
    metadata["tokenizer.ggml.precompiled_charsmap"] = charsmap
    with pytest.raises(CheckpointError, match="GGUF file: the character map"):
        tokenizer_from_gguf(metadata)


def test_metadata_is_plain_data(bpe: SubwordTokenizer) -> None:
    metadata = byte_level_metadata(bpe)
    again = json.loads(json.dumps(metadata))
    assert tokenizer_from_gguf(again).encode("the kids") == bpe.encode("the kids")


def test_a_character_map_is_applied() -> None:
    """A trie with no entry at all leaves every character as it is."""
    metadata = unigram_metadata(train_unigram(SENTENCES, 151))
    plain = tokenizer_from_gguf(metadata)
    units = [0] * 256
    charsmap = [0, 4, 0, 0] + [0] * 4 * len(units)
    ours = tokenizer_from_gguf(metadata | {"tokenizer.ggml.precompiled_charsmap": charsmap})
    assert ours.encode("the kids") == plain.encode("the kids")
