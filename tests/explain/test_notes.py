from __future__ import annotations

import dataclasses

from clearhead.explain.layer_group import LayerGroup
from clearhead.explain.marks import marks_of
from clearhead.explain.notes import notes_of
from clearhead.explain.pictures import HEADLINE, Aids
from tests.shared.explain_models import passage

PLAIN = marks_of(passage(["So", " kids", " left"]), 3, words=True)
MERGED = marks_of(passage(["[CLS]", "So", " ki", "ds"]), 4, words=True)
OWN = LayerGroup("L", ["L0"], "self", True, PLAIN, PLAIN, (0, 1, 2))


def test_only_what_holds_is_noted() -> None:
    assert notes_of(Aids(hide="nothing"), OWN) == (HEADLINE,)
    assert notes_of(Aids(), OWN) == (
        "Hidden, with its mass shown: attention to the first token.", HEADLINE,
    )  # fmt: skip


def test_every_aid_has_its_sentence() -> None:
    cross = LayerGroup("C", ["C0"], "cross", False, PLAIN, MERGED, None)
    aids = Aids(colour="log", pool="sum", measure="weight·‖v‖")
    assert notes_of(aids, cross, pooled="L3", more=("A caveat.",)) == (
        "Subwords are merged: attention into a word is summed, out of it averaged.",
        "Hidden, with its mass shown: attention to special tokens.",
        "Over L3: the sum is shown.",
        "Numbers are weight·‖v‖, each row divided by its sum.",
        "Colours are logarithmic.",
        "A row is the query that wrote the word; it had read the words before it.",
        "A caveat.",
        HEADLINE,
    )


def test_first_and_special_tokens_are_named_together() -> None:
    marks = marks_of(passage(["So", " kids", "[SEP]"]), 3, words=True)
    group = dataclasses.replace(OWN, columns=marks)
    assert notes_of(Aids(), group)[0].endswith("attention to the first token and special tokens.")
