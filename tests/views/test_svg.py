from __future__ import annotations

import re
from importlib import resources
from xml.etree import ElementTree

import numpy as np
import pytest
from made_looks import SENTENCE, made_look, translated_look

from clearhead.errors import InputError
from clearhead.explain.difference import make_difference
from clearhead.explain.pictures import Aids
from clearhead.explain.worked_examples import worked_example
from clearhead.views.svg import svg
from clearhead.views.svg_parts import RAMP, colour_at, png_of_pixels, shares_of, text_width

SPACE = "{http://www.w3.org/2000/svg}"


def texts(picture: str) -> list[str]:
    return ["".join(element.itertext()) for element in _all(picture, "text")]


def _all(picture: str, kind: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(picture).iter(SPACE + kind))


def test_a_head_has_title_labels_scale_and_every_number() -> None:
    picture = made_look().head("L1H4")
    drawn = texts(svg(picture))
    assert "Where L1H4 looks" in drawn
    assert "is looked at" in drawn and "looks" in drawn and "masked" in drawn and "hidden" in drawn
    assert drawn.count("kids") == 2  # a row and a column
    shown = np.where(np.arange(14) == 0, 0, picture.weights)
    wanted = [f"{w:.2f}".removeprefix("0") for w in shown.ravel() if w >= 0.005]
    assert [text for text in drawn if re.fullmatch(r"1?\.\d\d", text)] == wanted
    assert f"{shown.max():.2f}  weight" in drawn
    assert all(note in " ".join(drawn) for note in picture.notes)


def test_a_word_has_arcs_bars_and_numbers() -> None:
    picture = made_look().word("they", "L1H4")
    drawing = svg(picture)
    drawn = texts(drawing)
    strongest = picture.sources[0]
    assert "Where “they” looks: L1H4" in drawn
    assert drawn.count(f"{strongest.weight:.2f}") >= 2  # below the word, beside the bar
    assert drawn.count(strongest.mark.text) == 2
    assert len(_all(drawing, "path")) >= 2


def test_a_word_over_all_heads_names_the_heads() -> None:
    drawn = texts(svg(made_look().word("they")))
    assert any(re.fullmatch(r"strongest in L\dH\d", text) for text in drawn)
    assert any("on hidden words, the mean over heads" in text for text in drawn)


def test_a_word_of_another_text_stands_below() -> None:
    picture = translated_look().word(2)
    drawn = texts(svg(picture))
    assert picture.mark.text in drawn and "chat" in drawn


def test_long_texts_are_shortened_to_what_matters() -> None:
    look = made_look("alpha beta gamma delta epsilon " * 60, layers=2)
    drawn = texts(svg(look.word(250, "L1H4")))
    assert "…" in drawn and len(drawn) < 200
    head = svg(look.head("L1H4"))
    assert len(_all(head, "image")) == 1 and len(_all(head, "rect")) < 100


def test_gallery_steps_and_difference() -> None:
    look = made_look()
    gallery = texts(svg(look.gallery()))
    assert {"All 18 heads", "L0", "L2", "H0", "H5"} <= set(gallery)
    steps = texts(svg(look.steps("L1H4", "they")))
    assert {"score", "score/2", "softmax", "softmax·v", "sum", "−∞ future"} <= set(steps)
    other = made_look(SENTENCE.replace("kids", "cats"), layers=3)
    changed = texts(svg(make_difference(look, other)))
    assert "What changed" in changed and "Weights that changed most" in changed
    example = texts(svg(worked_example("selfish")[0]))
    assert {"k = v", "0.87", "[0.98 0.01 −0.75]"} <= set(example)


def test_hostile_words_are_text() -> None:
    look = made_look('x </text><script>y</script> ]]> & " \x07 z ' * 2)
    for insight in (look.head("L1H4"), look.word(3, "L1H4"), look.gallery(), look.steps("L1H4", 3)):
        drawing = svg(insight)
        assert "<script" not in drawing
        ElementTree.fromstring(drawing)


@pytest.mark.parametrize("text", ["one", "שלום עולם טוב", "我们 在 看", "🙂 👩‍👩‍👧 ok", "a" * 300])
def test_any_text_is_drawn(text: str) -> None:
    look = made_look(text, layers=2)
    for insight in (look.head("L1H4"), look.word(0), look.gallery()):
        ElementTree.fromstring(svg(insight))


def test_logarithmic_colours() -> None:
    assert "(log)" in " ".join(texts(svg(made_look(aids=Aids(colour="log")).head("L1H4"))))
    shares = shares_of(np.array([1.0, 0.01, 0.0], dtype=np.float32), 1.0, "log")
    assert shares.tolist() == pytest.approx([1.0, 0.5, 0.0])


def test_the_colours_are_those_of_the_page() -> None:
    css = resources.files("clearhead.views").joinpath("page", "view.css").read_text()
    light = css.split("}", 1)[0]
    assert tuple(re.findall(r"--ramp-\d: (#\w+)", light)) == RAMP
    assert colour_at(0) == RAMP[0] and colour_at(1) == RAMP[3]


def test_pixels_and_widths() -> None:
    image = np.zeros((3, 5, 3), dtype=np.uint8)
    assert png_of_pixels(image)[:8] == b"\x89PNG\r\n\x1a\n"
    assert text_width("mmm") > text_width("iii")
    assert text_width("中文") > text_width("ab")
    assert text_width("e\u0301") == text_width("e")


def test_what_cannot_be_drawn_is_said() -> None:
    with pytest.raises(InputError, match=r"SVG shows one of HeadPicture.*; Look came"):
        svg(made_look())
