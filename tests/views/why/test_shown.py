from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import clearhead as ch
from clearhead.text.characters import CharacterTokenizer
from tests.shared.explained_models import random_decoder, shown_why, why_of_a_date

pytestmark = pytest.mark.usefixtures("one_thread")


def test_hostile_texts_are_escaped() -> None:
    loaded = random_decoder(vocab=16)
    hostile = "<u>&\"'\x1b[31m</u>"
    tokenizer = CharacterTokenizer("".join(sorted(set(hostile))))
    found = ch.why(replace(loaded, tokenizer=tokenizer), hostile)
    assert "<u>" not in found.html() and "<u>" not in found.svg()
    for written in (str(found), found.html(), found.svg(), found.csv()):
        assert "\x1b" not in written
    assert "\x1b" not in found.json()


def test_a_notebook_shows_the_page_in_a_frame() -> None:
    bundle = shown_why()._repr_mimebundle_()
    assert "<iframe" in bundle["text/html"] and "data:image/svg+xml" in bundle["text/html"]
    assert bundle["text/plain"] == str(shown_why())


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((5, "a"), r"why wants a model of ch\.load"),
        ((None, "a"), r"why wants a model"),
        (("dates", 5), r"text is a text or a list of token ids; got int"),
        (("dates", b"a"), r"got bytes"),
        (("dates", "2021"), r"why wants the source"),
    ],
)
def test_bad_arguments_are_explained(arguments: Any, message: str) -> None:
    with pytest.raises(ch.ClearheadError, match=message):
        ch.why(*arguments)


def test_a_head_by_its_name() -> None:
    assert why_of_a_date().head("C0H1").sources[0].mark.text == "March"
    with pytest.raises(ch.ClearheadError, match="name 'L7H7' is no head of this model"):
        why_of_a_date().head("L7H7")
