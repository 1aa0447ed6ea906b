from __future__ import annotations

import numpy as np

from clearhead.explain.pictures import Mark
from clearhead.views.page.axes import Axes, mark_band, token_band
from clearhead.views.page.data import page_of_look
from tests.shared.golden_pictures import marks
from tests.shared.made_looks import made_look


def test_breaks_of_the_text_are_kept() -> None:
    look = made_look("one two\nthree, four\n\nfive six seven")
    assert page_of_look(look).meta["axes"][0]["gaps"] == [0, 1, 2, 0, 1, 2, 1, 1]


def test_the_same_words_are_one_axis() -> None:
    axes = Axes()
    words = marks(["one", "two"])
    assert axes.number(words, "Text", "one two") == axes.number(words, "Source", "one two") == 0
    assert axes.number(words[:1], "Text", "one") == 1
    assert axes.listed[0]["words"] == ["one", "two"] and axes.listed[0]["gaps"] == [0, 1]


def test_a_causal_query_sees_a_run_of_keys() -> None:
    band = token_band(made_look(layers=1).seen["L0"])
    assert band is not None
    assert band[0].tolist() == [0] * 14 and band[1].tolist() == list(range(1, 15))


def test_a_word_sees_what_one_of_its_tokens_sees() -> None:
    words = (Mark("a", 0, 1, False, (0,)), Mark("bc", 1, 3, False, (1, 2)))
    band = (np.array([0, 0, 0]), np.array([1, 1, 3]))
    assert mark_band(band, words, words) == {"low": [0, 0], "high": [1, 2]}
