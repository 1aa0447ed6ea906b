from __future__ import annotations

import pytest

from clearhead.errors import InputError
from clearhead.explain.marks import find_mark, hidden_columns, is_word, marks_of
from clearhead.explain.pictures import Aids
from clearhead.text.token import Token
from clearhead.trace.passage import Passage
from tests.shared.explain_models import passage

PIECES = ["[CLS]", "The", " ki", "ds", " left", ",", " kids", "[SEP]"]


def test_subwords_become_words_with_their_tokens_and_characters() -> None:
    marks = marks_of(passage(PIECES), 8, words=True)
    assert [mark.text for mark in marks] == ["⟨CLS⟩", "The", "kids", "left", ",", "kids", "⟨SEP⟩"]
    assert marks[2].tokens == (2, 3)
    assert "The kids left, kids"[marks[2].start : marks[2].end] == "kids"
    assert [mark.special for mark in marks] == [True] + [False] * 5 + [True]


def test_tokens_stay_apart_when_asked() -> None:
    marks = marks_of(passage(PIECES), 8, words=False)
    assert [mark.text for mark in marks][2:4] == ["ki", "ds"]
    assert all(len(mark.tokens) == 1 for mark in marks)


def test_without_tokens_places_are_numbers() -> None:
    assert [mark.text for mark in marks_of(None, 3, words=True)] == ["0", "1", "2"]


def test_scripts_without_spaces_are_not_one_long_word() -> None:
    marks = marks_of(passage(["你", "好", "世界"]), 3, words=True)
    assert [mark.text for mark in marks] == ["你", "好", "世界"]


def test_bytes_of_one_character_stay_together() -> None:
    tokens = (Token(0, "<0xE4>", 0, 1), Token(1, "<0xBD><0xA0>", 0, 1), Token(2, "好", 1, 2))
    assert [m.text for m in marks_of(Passage("你好", tokens), 3, words=True)] == ["你", "好"]


@pytest.mark.parametrize(
    ("piece", "shown"),
    [("\n\n", "⏎⏎"), ("  ", "␣␣"), ("a\x1b[31m", "a␛[31m"), ("\u202ex", "\ufffdx"), ("\x7f", "␡")],
)
def test_what_cannot_be_seen_is_made_visible(piece: str, shown: str) -> None:
    assert marks_of(passage([piece]), 1, words=False)[0].text == shown


def test_no_mark_is_empty() -> None:
    tokens = (Token(-1, "", 0, 0, special=True), Token(3, "", 0, 0))
    assert [m.text for m in marks_of(Passage("", tokens), 2, words=True)] == ["⟨pad⟩", "∅"]


def test_what_is_hidden() -> None:
    marks = marks_of(passage(["The", " kids", "[SEP]"]), 3, words=True)
    assert hidden_columns(marks, Aids(), causal=True) == (0, 2)
    assert hidden_columns(marks, Aids(), causal=False) == (2,)
    assert hidden_columns(marks, Aids(hide="special"), causal=True) == (2,)
    assert hidden_columns(marks, Aids(hide="nothing"), causal=True) == ()


def test_words_are_found_by_text_number_and_count() -> None:
    marks = marks_of(passage(PIECES), 8, words=True)
    assert find_mark(marks, "left") == 3
    assert find_mark(marks, "THE") == 1
    assert find_mark(marks, "kids#2") == 5
    assert find_mark(marks, -1) == 6
    assert find_mark(marks, "3") == 3
    with pytest.raises(InputError, match=r"'kids' occurs 2 times, as words 2, 5"):
        find_mark(marks, "kids")
    with pytest.raises(InputError, match=r"no word 'lions' here.*\nHint: the words are: ⟨CLS⟩ The"):
        find_mark(marks, "lions")
    with pytest.raises(InputError, match=r"word 7: there are words 0 … 6"):
        find_mark(marks, 7)


def test_punctuation_says_nothing() -> None:
    marks = marks_of(passage(PIECES), 8, words=True)
    assert [is_word(mark) for mark in marks] == [False, True, True, True, False, True, False]
