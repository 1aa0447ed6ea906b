from __future__ import annotations

import re

from clearhead.views.svg.word import draw_word
from tests.shared.made_looks import made_look, translated_look
from tests.shared.svg_elements import elements, texts


def test_a_word_has_arcs_bars_and_numbers() -> None:
    picture = made_look().word("they", "L1H4")
    drawing = draw_word(picture)
    drawn = texts(drawing)
    strongest = picture.sources[0]
    assert "Where “they” looks: L1H4" in drawn
    assert drawn.count(f"{strongest.weight:.2f}") >= 2  # below the word, beside the bar
    assert drawn.count(strongest.mark.text) == 2
    assert len(elements(drawing, "path")) >= 2


def test_a_word_over_all_heads_names_the_heads() -> None:
    drawn = texts(draw_word(made_look().word("they")))
    assert any(re.fullmatch(r"in L\dH\d", text) for text in drawn)
    assert any("on hidden words, the mean over heads" in text for text in drawn)


def test_a_word_of_another_text_stands_below() -> None:
    picture = translated_look().word(2)
    drawn = texts(draw_word(picture))
    assert picture.mark.text in drawn and "chat" in drawn
