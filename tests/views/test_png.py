from __future__ import annotations

import struct

import pytest

from clearhead.errors import InputError
from clearhead.views import png as module
from clearhead.views.png import png
from tests.shared.made_looks import made_look


def size(image: bytes) -> tuple[int, int]:
    assert image[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", image[16:24])
    return width, height


def test_png_is_the_svg_at_a_scale() -> None:
    picture = made_look().head("L1H4")
    once, twice = size(png(picture, 1)), size(png(picture))
    assert (2 * once[0], 2 * once[1]) == twice


def test_words_are_drawn_where_the_system_has_no_fonts(monkeypatch: pytest.MonkeyPatch) -> None:
    picture = made_look().word("they", "L1H4")
    usual = png(picture, 1)
    monkeypatch.setattr(module, "_system_fonts", list)
    assert png(picture, 1) == usual  # Open Sans has every letter of it
    monkeypatch.setattr(module, "_own_fonts", list)
    assert len(png(picture, 1)) < 0.8 * len(usual)  # no words: this is what must not happen


@pytest.mark.parametrize("scale", [0, -1, 17, True, float("nan")])
def test_scales_that_make_no_picture(scale: float) -> None:
    with pytest.raises(InputError, match="scale must be above 0"):
        png(made_look().head("L1H4"), scale)
