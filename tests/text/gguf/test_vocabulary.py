from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from clearhead.errors import CheckpointError
from clearhead.text.gguf.vocabulary import CONTROL, NORMAL, GgufVocabulary

METADATA: dict[str, Any] = {
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


def test_arrays_of_the_file_are_as_good_as_lists() -> None:
    arrays: dict[str, Any] = {
        "token_type": np.array([CONTROL, NORMAL, NORMAL, NORMAL], np.int32),
        "scores": np.array([0, -1.5, -2, -3], np.float32),
        "precompiled_charsmap": np.array([-1, 0, 127], np.int8),
    }
    vocabulary = GgufVocabulary(
        METADATA | {f"tokenizer.ggml.{name}": array for name, array in arrays.items()}
    )
    listed = GgufVocabulary(METADATA)
    assert vocabulary.types == listed.types and vocabulary.scores == listed.scores
    assert vocabulary.charsmap() == listed.charsmap()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("tokens", ["a" * 1025], "has an entry of 1,025 characters; at most 1024 go"),
        ("tokens", np.array([1, 2]), "tokens should be a list of str; entry 0 is 1"),
        ("token_type", np.array([0.5] * 4), "token_type should be a list of int; entry 0 is 0.5"),
        ("token_type", np.array([True] * 4), "should be a list of int; entry 0 is True"),
        ("merges", {"a": 1}, "merges should be a list, and is {'a': 1}"),
    ],
)
def test_what_is_refused(name: str, value: Any, message: str) -> None:
    vocabulary = GgufVocabulary(METADATA | {f"tokenizer.ggml.{name}": value})
    with pytest.raises(CheckpointError, match=message):
        _ = (vocabulary.types, vocabulary.merges)
