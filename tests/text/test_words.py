from __future__ import annotations

from pathlib import Path

import pytest

from clearhead.text import WordTokenizer, load_tokenizer
from tests.shared.varied_strings import varied_strings

PROSE = "The kids, Anna's (two) and 3 others, weren't scared of “lions”; they left!"


def words(text: str) -> list[str]:
    return [token.text for token in WordTokenizer.from_texts(text).tokens(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("So they left.", ["So", "they", "left", "."]),
        ("don't 'quote' it", ["don't", "'", "quote", "'", "it"]),
        ("a_b2 c-d", ["a_b2", "c", "-", "d"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("cafe\u0301 ❤\ufe0f!", ["cafe\u0301", "❤\ufe0f", "!"]),
        (" \u0301x", ["\u0301", "x"]),
        ("  \n ", []),
        ("", []),
    ],
)
def test_words_and_marks(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_prose_comes_back_as_it_was() -> None:
    tokenizer = WordTokenizer.from_texts([PROSE])
    assert tokenizer.decode(tokenizer.encode(PROSE)) == PROSE


def test_white_space_becomes_one_space() -> None:
    tokenizer = WordTokenizer.from_texts("a b - c")
    assert tokenizer.decode(tokenizer.encode("a\n\n  b-c")) == "a b - c"


def test_unknown_words() -> None:
    tokenizer = WordTokenizer(["they", "left"])
    assert tokenizer.encode("they never left") == [4, 3, 5]
    assert tokenizer.decode([4, 3, 5]) == "they \ufffd left"


def test_spans_are_the_words_and_leave_only_white_space() -> None:
    texts = varied_strings()
    tokenizer = WordTokenizer.from_texts(texts)
    for text in texts:
        end = 0
        for token in tokenizer.tokens(text):
            assert token.start < token.end
            assert text[token.start : token.end] == token.text
            assert not text[end : token.start].strip()
            end = token.end
        assert not text[end:].strip()


def test_streaming_equals_decoding() -> None:
    tokenizer = WordTokenizer.from_texts(PROSE)
    stream = tokenizer.stream()
    pieces = [stream.push(id) for id in tokenizer.encode(PROSE)]
    assert pieces[:4] == ["The", " kids", ",", " Anna's"]
    assert "".join(pieces) + stream.flush() == PROSE


def test_saved_and_read_again(tmp_path: Path) -> None:
    tokenizer = WordTokenizer.from_texts(PROSE, add_bos=True)
    tokenizer.save(tmp_path)
    again = load_tokenizer(tmp_path)
    assert isinstance(again, WordTokenizer)
    assert again.encode(PROSE) == tokenizer.encode(PROSE)
