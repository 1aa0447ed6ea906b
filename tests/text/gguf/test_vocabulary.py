from __future__ import annotations

from clearhead.text.gguf.vocabulary import CONTROL, NORMAL, GgufVocabulary

METADATA = {
    "general.architecture": "llama",
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.tokens": ["<eos>", "a", "b", "ab"],
    "tokenizer.ggml.merges": ["a b"],
    "tokenizer.ggml.token_type": [CONTROL, NORMAL, NORMAL, NORMAL],
    "tokenizer.ggml.scores": [0, -1.5, -2, -3],
    "tokenizer.ggml.eos_token_id": 0,
    "tokenizer.ggml.precompiled_charsmap": [-1, 0, 127],
}


def test_what_the_file_says() -> None:
    vocabulary = GgufVocabulary(METADATA)
    assert (vocabulary.kind, vocabulary.pre) == ("gpt2", "default")
    assert vocabulary.ids == {"<eos>": 0, "a": 1, "b": 2, "ab": 3}
    assert vocabulary.merges == [("a", "b")]
    assert vocabulary.scores == [0, -1.5, -2, -3]
    assert vocabulary.special_ids == {"eos": 0}
    assert vocabulary.of_type(CONTROL) == ["<eos>"]
    assert vocabulary.flag("add_bos_token", True)
    assert vocabulary.charsmap() == b"\xff\x00\x7f"


def test_what_it_may_leave_out() -> None:
    vocabulary = GgufVocabulary({"tokenizer.ggml.tokens": ["a", "b"]})
    assert vocabulary.types == [NORMAL, NORMAL]
    assert vocabulary.special_ids == {}
    assert vocabulary.charsmap() == b""
