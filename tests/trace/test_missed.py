from __future__ import annotations

from clearhead.trace.missed import tells_missed, told_missed


def test_some_reasons_are_said_and_the_others_counted() -> None:
    assert told_missed(0, 5, list("abcde")) == (
        "0 of 5 attention modules watched; a; b; c; and 2 more"
    )
    assert told_missed(2, 3, ["a"]) == "2 of 3 attention modules watched; a"


def test_such_sentences_are_told_from_other_notes() -> None:
    assert tells_missed("before: " + told_missed(1, 2, ["a"]))
    assert not tells_missed("Attention shows where information could come from.")
