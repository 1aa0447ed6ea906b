from __future__ import annotations

from clearhead.explain.difference import make_difference
from clearhead.views.svg.difference import draw_difference
from tests.shared.made_looks import SENTENCE, made_look
from tests.shared.svg_elements import texts


def test_heads_words_and_weights_are_listed() -> None:
    look, other = made_look(), made_look(SENTENCE.replace("kids", "cats"))
    found = make_difference(look, other)
    drawn = texts(draw_difference(found))
    assert {"What changed", "Weights that changed most"} <= set(drawn)
    assert found.heads[0].before in drawn and "kids / cats" in drawn
    assert drawn.count(f"{found.heads[0].distance:.2f}") >= 1


def test_nothing_changed_is_drawn_too() -> None:
    drawn = texts(draw_difference(make_difference(made_look(), made_look())))
    assert "0.00" in drawn and not [text for text in drawn if " looks at " in text]
