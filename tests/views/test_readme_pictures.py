from __future__ import annotations

import re
from pathlib import Path

import pytest

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"


@pytest.mark.download
def test_the_picture_in_the_readme_is_what_the_product_draws() -> None:
    import clearhead as ch
    from clearhead.explain.reading import make_look
    from clearhead.views.svg import svg

    look = make_look(
        ch.load("smollm2"), "The kids were scared of the lions, so they left right away."
    )
    drawn = svg(look.word(look.chosen_word, look.chosen_head))
    kept = (IMAGES / "they.svg").read_text(encoding="utf-8")
    words = re.compile(r"<text [^>]*>([^<]*)</text>")
    # Widths of lines may differ in their last digit from machine to machine; what is said may not.
    assert words.findall(kept) == words.findall(drawn), "python docs/readme_pictures.py"


def test_the_photograph_is_small() -> None:
    assert 10_000 < (IMAGES / "look.png").stat().st_size < 300_000
