from __future__ import annotations

from clearhead.text.token import Token
from clearhead.trace.passage import Passage
from clearhead.views.page.zoom.axis import axis_json, pieces_of

TOKENS = (
    Token(0, "[CLS]", 0, 0, True),
    Token(1, "The", 0, 3),
    Token(2, " kids", 3, 8),
    Token(3, "\n", 8, 9),
    Token(4, "é", 9, 10),
    Token(5, "é", 9, 10),  # a character of two tokens
    Token(6, "[SEP]", 10, 10, True),
)


def test_pieces_joined_are_the_text() -> None:
    passage = Passage("The kids\né", TOKENS)
    assert "".join(pieces_of(passage)) == passage.text
    found = axis_json(passage, 7, "rows")
    assert found["pieces"][1:4] == ["The", " kids", "\n"]
    names = found["names"]
    assert names["0"] == "⟨CLS⟩" and names["6"] == "⟨SEP⟩" and names["3"] == "⏎"
    assert "1" not in names and "2" not in names and names["4"] == "é"


def test_tokens_that_are_not_known_are_numbers() -> None:
    assert axis_json(None, 2, "rows")["names"] == {"0": "0", "1": "1"}
