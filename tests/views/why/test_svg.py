from __future__ import annotations

from clearhead.views.why.text import signed
from tests.shared.explained_models import shown_why
from tests.shared.svg_elements import texts


def test_the_picture_has_the_same_numbers() -> None:
    drawn = texts(shown_why().svg())
    for part in shown_why().heads[:8]:
        assert part.name in drawn and signed(part.value) in drawn
    assert signed(shown_why().total) in drawn
    assert shown_why().png()[:8] == b"\x89PNG\r\n\x1a\n"
