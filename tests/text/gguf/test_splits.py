from __future__ import annotations

import pytest

from clearhead.errors import CheckpointError
from clearhead.text.gguf.splits import TEXT_SPLITS, pre_tokenizer, text_split
from clearhead.text.spelling import readable_bytes

TEXT = "It's 2024, we'LL see\n\n  x"


def parts(name: str) -> list[str]:
    found = pre_tokenizer(text_split(name)).pre_tokenize_str(TEXT)
    return [readable_bytes(part) for part, _ in found]


@pytest.mark.parametrize("name", TEXT_SPLITS)
def test_nothing_is_lost(name: str) -> None:
    assert "".join(parts(name)) == TEXT


def test_how_families_differ() -> None:
    assert " 2024" in parts("gpt-2")
    assert parts("smollm")[2:7] == [" ", "2", "0", "2", "4"]
    assert "202" in parts("llama-bpe")
    assert "'LL" in parts("qwen2")
    assert "'LL" not in parts("gpt-2")


def test_settings_beside_the_patterns() -> None:
    assert text_split("llama3").whole_words
    assert text_split("llama3").add_bos
    assert text_split("qwen2").compose
    assert not text_split("gpt2").compose


def test_an_unknown_rule() -> None:
    with pytest.raises(CheckpointError, match=r"by the rule 'x' .* known: default, gpt-2"):
        text_split("x")
