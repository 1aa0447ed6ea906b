from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearhead.text import (
    StreamDecoder,
    SubwordTokenizer,
    tokenizer_from_gguf,
    train_bpe,
    train_unigram,
    train_wordpiece,
)
from tests.shared.gguf_metadata import SENTENCES, sentencepiece_metadata
from tests.shared.varied_strings import varied_strings

BPE = train_bpe(SENTENCES, 421)
LLAMA = tokenizer_from_gguf(sentencepiece_metadata())
KINDS = [BPE, LLAMA, train_wordpiece(SENTENCES, 199), train_unigram(SENTENCES, 151)]


def streamed(tokenizer: SubwordTokenizer, ids: list[int], *, skip_special: bool = True) -> str:
    stream = tokenizer.stream(skip_special=skip_special)
    return "".join([stream.push(id) for id in ids]) + stream.flush()


@pytest.mark.parametrize("tokenizer", KINDS, ids=["bytes", "llama", "wordpiece", "unigram"])
@pytest.mark.parametrize("skip_special", [True, False])
def test_streaming_equals_decoding(tokenizer: SubwordTokenizer, skip_special: bool) -> None:
    for text in varied_strings(200):
        ids = tokenizer.encode(text)
        whole = tokenizer.decode(ids, skip_special=skip_special)
        assert streamed(tokenizer, ids, skip_special=skip_special) == whole


@given(st.lists(st.integers(0, BPE.size - 1), max_size=90))
def test_any_bytes_equal_decoding(ids: list[int]) -> None:
    assert streamed(BPE, ids) == BPE.decode(ids)


def test_bytes_of_a_character_wait_for_each_other() -> None:
    stream = BPE.stream()
    ids = [id for id in BPE.encode("a🎉b") if id]
    assert [stream.push(id) for id in ids] == ["a", "", "", "", "🎉", "b"]
    assert stream.flush() == ""


def test_the_rest_is_flushed_once() -> None:
    stream = BPE.stream()
    half = BPE.encode("é")[:1]
    assert [stream.push(id) for id in half] == [""]
    assert (stream.flush(), stream.flush()) == ("\ufffd", "")


def test_spaces_survive_special_tokens_and_beginnings() -> None:
    ids = LLAMA.encode("the kids") + LLAMA.encode("lions")
    stream = LLAMA.stream()
    assert [stream.push(id) for id in ids] == ["", "the", " kids", "", " lions"]


def test_good_characters_out_of_single_bytes_are_given_at_once() -> None:
    stream = LLAMA.stream()
    ids = LLAMA.encode("你好世", special=False)
    assert "".join(stream.push(id) for id in ids) == "你好世"


def test_long_nonsense_stays_linear() -> None:
    decoded: list[int] = []

    def decode(ids: list[int]) -> str:
        decoded.append(len(ids))
        return BPE.decode(ids)

    lone = BPE.id("Ã")
    assert lone is not None
    stream = StreamDecoder(decode)  # type: ignore[arg-type]
    text = "".join(stream.push(lone) for _ in range(500)) + stream.flush()
    assert text == "\ufffd" * 500
    assert max(decoded) <= 33


def test_random_ids_of_byte_fallback_keep_what_is_text() -> None:
    chance = random.Random(5)
    for _ in range(300):
        ids = [chance.randrange(LLAMA.size) for _ in range(chance.randint(1, 40))]
        whole = LLAMA.decode(ids)
        if "\ufffd" not in whole:
            assert streamed(LLAMA, ids) == whole
        assert len(streamed(LLAMA, ids)) <= len(whole)
