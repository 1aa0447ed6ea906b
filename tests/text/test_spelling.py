from __future__ import annotations

import pytest
from tokenizers.pre_tokenizers import ByteLevel

from clearhead.text.spelling import byte_alphabet, readable, readable_bytes, readable_meta


def test_the_byte_alphabet_is_gpt2s() -> None:
    alphabet = byte_alphabet()
    assert set(alphabet) == set(ByteLevel.alphabet())
    assert sorted(alphabet.values()) == list(range(256))
    assert (alphabet["Ġ"], alphabet["Ċ"], alphabet["a"]) == (0x20, 0x0A, 0x61)


@pytest.mark.parametrize(
    ("piece", "text"),
    [
        ("Ġkids", " kids"),
        ("Ċ", "\n"),
        ("Ã©", "é"),
        ("Ã", "<0xC3>"),
        ("Ġâľ", " <0xE2><0x9C>"),
        ("<|im_end|>", "<|im_end|>"),
        ("你", "你"),
    ],
)
def test_bytes_as_text(piece: str, text: str) -> None:
    assert readable_bytes(piece) == text


@pytest.mark.parametrize(
    ("piece", "text"),
    [("▁kids", " kids"), ("<0x0A>", "\n"), ("<0xE4>", "<0xE4>"), ("a<0x0A>", "a<0x0A>")],
)
def test_meta_spaces_as_text(piece: str, text: str) -> None:
    assert readable_meta(piece) == text


def test_the_decoder_tells_the_spelling() -> None:
    replace = {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
    assert readable({"type": "ByteLevel"}) is readable_bytes
    assert readable({"type": "Metaspace"}) is readable_meta
    assert readable({"type": "Sequence", "decoders": [replace]}) is readable_meta
    assert readable({"type": "WordPiece"})("##ing") == "##ing"
    assert readable(None)("▁") == "▁"
