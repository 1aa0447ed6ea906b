from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearhead.visible import VisibleStream, visible_lines, visible_text
from tests.shared.terminals import commands_a_terminal
from tests.shared.varied_strings import ALPHABETS, EMOJI


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x00b\x1b[31m\x7f\x85\ud800", "a␀b␛[31m␡��"),
        ("\u202eabc\u2066\u200f", "�abc��"),
        ("a\u200bb\ufeff\u2028\xad", "a�b���"),
        ("a\u200db", "a�b"),
        ("👩\u200d🚀 می\u200cخواهم", "👩\u200d🚀 می\u200cخواهم"),
        ("\u200d👩", "�👩"),
        ("a\nb\tc\r", "a␊b␉c␍"),
        ("plain é 漢 ❤️", "plain é 漢 ❤️"),
    ],
)
def test_signs(text: str, shown: str) -> None:
    assert visible_text(text) == shown


def test_lines_and_tabs_stay_where_they_are_meant() -> None:
    assert visible_lines("a\nb\tc\r\x1b") == "a\nb\tc␍␛"


@given(st.text(st.characters(codec=None)))
def test_nothing_that_commands_is_left_and_places_stay(text: str) -> None:
    shown = visible_text(text)
    assert len(shown) == len(text)
    assert not any(map(commands_a_terminal, shown)) and "\n" not in shown
    assert not any(0xD800 <= ord(character) < 0xE000 for character in shown)
    assert visible_text(shown) == shown


def test_every_control_and_format_character_has_a_sign() -> None:
    """Unicode's own lists: controls (Cc), surrogates (Cs), and what turns text around."""
    for code in range(0x110000):
        character = chr(code)
        turns = unicodedata.bidirectional(character) in (
            "LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI",
        )  # fmt: skip
        if unicodedata.category(character) in ("Cc", "Cs") or turns:
            assert visible_text(character) != character, hex(code)


def test_writing_is_left_alone() -> None:
    for letters in [*ALPHABETS.values(), *EMOJI]:
        assert visible_text(letters) == letters


@given(st.text(st.characters(codec=None)), st.integers(1, 5))
def test_a_stream_gives_what_the_whole_text_gives(text: str, step: int) -> None:
    stream = VisibleStream()
    pieces = [stream(text[start : start + step]) for start in range(0, len(text), step)]
    assert "".join(pieces) == visible_lines(text)
