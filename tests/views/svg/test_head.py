from __future__ import annotations

import re

import numpy as np

from clearhead.explain.pictures import Aids
from clearhead.views.svg.head import draw_head
from tests.shared.made_looks import made_look, translated_look
from tests.shared.svg_elements import elements, texts


def test_a_head_has_title_labels_scale_and_every_number() -> None:
    picture = made_look().head("L1H4")
    drawn = texts(draw_head(picture))
    assert "Where L1H4 looks" in drawn
    assert (
        "keys (looked at)" in drawn
        and "queries" in drawn
        and "masked" in drawn
        and "hidden" in drawn
    )
    assert drawn.count("kids") == 2  # a row and a column
    shown = np.where(np.arange(14) == 0, 0, picture.weights)
    wanted = [f"{w:.2f}".removeprefix("0") for w in shown.ravel() if w >= 0.005]
    assert [text for text in drawn if re.fullmatch(r"1?\.\d\d", text)] == wanted
    assert f"{shown.max():.2f}  weight" in drawn
    assert all(note in " ".join(drawn) for note in picture.notes)


def test_the_scale_says_that_colours_are_logarithmic() -> None:
    drawn = draw_head(made_look(aids=Aids(colour="log")).head("L1H4"))
    assert "(log)" in " ".join(texts(drawn))


def test_cross_attention_has_its_own_title() -> None:
    assert any(
        "from written to source words" in text
        for text in texts(draw_head(translated_look().head("C0H1")))
    )


def test_a_very_long_text_is_pooled_to_pixels() -> None:
    drawn = draw_head(made_look("word " * 79, layers=1).head("L0H1"))
    assert len(elements(drawn, "image")) == 1 and "masked" in texts(drawn)
