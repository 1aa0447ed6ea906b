from __future__ import annotations

import numpy as np

from clearhead.explain.make_look import make_look
from clearhead.explain.pictures import shown_number, shown_numbers
from tests.shared.explain_models import decoder


def test_a_shown_number_has_four_decimals() -> None:
    assert shown_number(0.59964999) == 0.5996
    assert shown_number(1 / 3) == 0.3333


def test_many_numbers_are_shown_like_one() -> None:
    numbers = np.array([[0.123456, 0.99999], [0.00004, 0.5]], dtype=np.float32)
    shown = shown_numbers(numbers)
    assert shown.dtype == np.float64
    assert shown.tolist() == [[shown_number(float(number)) for number in row] for row in numbers]


def test_reprs_are_short() -> None:
    look = make_look(decoder(), "the students opened their books")
    assert repr(look) == "Look(tiny, 2 layers, 8 heads, 'the students opened their books')"
    assert repr(look.head("L1H2")) == (
        "HeadPicture('L1H2', kind='self', causal=True, 5 rows × 5 columns)"
    )
    word = look.word("their", "L0H1")
    strongest = word.sources[0]
    assert repr(word).startswith(
        f"WordPicture('their' in L0H1: '{strongest.mark.text}' {strongest.weight:g}"
    )
    assert repr(look.gallery(3)) == "Gallery(2 layers, 8 heads, maps of 3 × 3 cells)"
    assert repr(look.steps("L0H1", 2)).startswith("StepTable('L0H1: where “opened” looks', word=")
    assert len(repr(look.steps("L0H1", 2))) < 100
