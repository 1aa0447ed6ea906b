from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from clearhead.errors import InputError
from clearhead.explain.choice import Choice
from clearhead.explain.layer_group import LayerGroup
from clearhead.explain.marks import marks_of
from tests.shared.explain_models import passage

WORDS = ["So", " kids", " saw", " lions", " and", " they", " ran"]
MARKS = marks_of(passage(WORDS), 7, words=True)
GROUP = LayerGroup("L", ["L0", "L1"], "self", True, MARKS, MARKS, tuple(range(7)))


def weights_of(layer: str, rows: Sequence[int]) -> tuple[list[str], Tensor]:
    """In L0 “they” attends to “kids” by 0.5, in L1 “ran” attends to “lions” by 0.9."""
    weights = torch.zeros(1, 7, 7)
    weights[0, *((5, 1) if layer == "L0" else (6, 3))] = 0.5 if layer == "L0" else 0.9
    return [f"{layer}H0"], weights[:, list(rows)]


def test_the_rule_chooses_what_the_user_left_open() -> None:
    free = Choice().find(GROUP, weights_of)
    assert (free.row, free.column, free.head) == (5, 1, "L0H0")  # the pronoun
    word = Choice(word="ran").find(GROUP, weights_of)
    assert (word.row, word.column, word.head) == (6, 3, "L1H0")
    layer = Choice(head="L1").find(GROUP, weights_of)
    assert (layer.row, layer.head) == (6, "L1H0")


def test_all_is_no_layer() -> None:
    assert Choice(head="all").layer is None
    assert Choice(head="L1H0").layer == "L1H0"


def test_the_reason_names_who_chose() -> None:
    choice = Choice(word="ran")
    assert choice.why(choice.find(GROUP, weights_of), GROUP) == (
        "the word was chosen, the head by the rule: “ran” → “lions” 0.90 in L1H0 is strong, and "
        "more than other words give to it there"
    )
    quiet = Choice(word="kids", head="L0")
    assert quiet.why(quiet.find(GROUP, weights_of), GROUP) == (
        "word and head were chosen; no word stands out from what “kids” gives to others"
    )


def test_an_unknown_word_is_refused() -> None:
    with pytest.raises(InputError, match="there is no word 'cats' here"):
        Choice(word="cats").find(GROUP, weights_of)
