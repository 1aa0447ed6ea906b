from __future__ import annotations

import pytest

import clearhead as ch
from clearhead.explain.patched.pair import pair_of
from tests.shared.patched_models import DONOR, TEXT, letters

pytestmark = pytest.mark.usefixtures("one_thread")


def test_words_in_the_same_places() -> None:
    pair = pair_of(letters(), TEXT, DONOR)
    assert [mark.text for mark in pair.columns] == ["ab", "␣", "cd", "␣", "ef", "␣", "gh"]
    assert pair.others == ("ab", "␣", "cx", "␣", "ef", "␣", "gh") and pair.changed == (2,)
    assert pair.run.position == pair.donor.position == 10


def test_a_position_is_one_of_the_text() -> None:
    pair = pair_of(letters(), TEXT, DONOR, "cd")
    assert pair.run.position == 4 and len(pair.donor.passage) == 5


@pytest.mark.parametrize(
    ("text", "donor", "message"),
    [
        (
            TEXT,
            "ab cde ef gh",
            r"has 11 tokens and the donor 12: “cd” \(\d tokens\) against “cde”",
        ),
        (TEXT, TEXT, r"text and donor are the same"),
        (TEXT, "", r"donor: the text is empty"),
        ("", TEXT, r"the text is empty"),
        (TEXT, "ab cd ef", r"“␣ gh” \(3 tokens\) against nothing"),
    ],
)
def test_texts_that_do_not_align(text: str, donor: str, message: str) -> None:
    with pytest.raises(ch.ClearheadError, match=message):
        pair_of(letters(), text, donor)


def test_a_difference_behind_the_prediction_is_none() -> None:
    with pytest.raises(ch.ClearheadError, match="the same up to the position"):
        pair_of(letters(), TEXT, DONOR, "ab")


def test_models_that_cannot_be_patched() -> None:
    with pytest.raises(ch.ClearheadError, match="this is an encoder-decoder"):
        pair_of(ch.load("dates"), "2021", "2022")
