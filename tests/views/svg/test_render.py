from __future__ import annotations

from xml.etree import ElementTree

import pytest

from clearhead.errors import InputError
from clearhead.views.svg.render import svg
from tests.shared.made_looks import made_look
from tests.shared.svg_elements import elements, texts


def test_long_texts_are_shortened_to_what_matters() -> None:
    look = made_look("alpha beta gamma delta epsilon " * 60, layers=2)
    drawn = texts(svg(look.word(250, "L1H4")))
    assert "…" in drawn and len(drawn) < 200
    head = svg(look.head("L1H4"))
    assert len(elements(head, "image")) == 1 and len(elements(head, "rect")) < 100


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


def test_what_cannot_be_drawn_is_said() -> None:
    with pytest.raises(InputError, match=r"SVG shows one of HeadPicture.*; Look came"):
        svg(made_look())
