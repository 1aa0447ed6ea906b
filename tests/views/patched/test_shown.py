from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import clearhead as ch
from clearhead.text.characters import CharacterTokenizer
from tests.shared.explained_models import random_decoder
from tests.shared.patched_models import DONOR, TEXT, letters, shown_patch_map

pytestmark = pytest.mark.usefixtures("one_thread")


def test_hostile_texts_are_escaped() -> None:
    hostile, other = "<u>&\"'\x1b[31m</u>", "<b>&\"'\x1b[31m</u>"
    tokenizer = CharacterTokenizer("".join(sorted(set(hostile + other))))
    loaded = replace(random_decoder(vocab=tokenizer.size), tokenizer=tokenizer)
    found = ch.patch_map(loaded, hostile, other, "<", ">")
    assert "<u>" not in found.html() and "<u>" not in found.svg()
    for written in (str(found), found.html(), found.svg(), found.csv(), found.json()):
        assert "\x1b" not in written


def test_a_notebook_shows_the_page_in_a_frame() -> None:
    bundle = shown_patch_map()._repr_mimebundle_()
    assert "<iframe" in bundle["text/html"] and "data:image/svg+xml" in bundle["text/html"]


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((5, TEXT, DONOR), r"patch_map wants a model of ch\.load"),
        ((None, TEXT, DONOR), r"only a model can be patched"),
        ((letters, TEXT, 5), r"donor is a text or a list of token ids; got int"),
        ((letters, b"a", DONOR), r"text is a text .* got bytes"),
    ],
)
def test_bad_arguments_are_explained(arguments: Any, message: str) -> None:
    model = letters() if arguments[0] is letters else arguments[0]
    with pytest.raises(ch.ClearheadError, match=message):
        ch.patch_map(model, *arguments[1:])
