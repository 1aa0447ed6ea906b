from __future__ import annotations

import re
from importlib import resources

import numpy as np
import pytest

from clearhead.views.svg.parts import (
    ACCENT,
    INK,
    LINE,
    PAPER,
    QUIET,
    RAMP,
    Drawing,
    colour_at,
    draw_notes,
    ink_on,
    png_of_pixels,
    shares_of,
    shortened,
    text_width,
    wrapped,
)
from tests.shared.svg_elements import texts


def test_logarithmic_colours_span_four_decades() -> None:
    shares = shares_of(np.array([1.0, 0.01, 0.0], dtype=np.float32), 1.0, "log")
    assert shares.tolist() == pytest.approx([1.0, 0.5, 0.0])
    linear = shares_of(np.array([0.3, 0.0], dtype=np.float32), 0.6, "linear")
    assert linear.tolist() == pytest.approx([0.5, 0.0])


def test_the_colours_are_those_of_the_page() -> None:
    css = resources.files("clearhead.views.page").joinpath("assets", "colours.css").read_text()
    light = dict(re.findall(r"--([\w-]+): (#\w+)", css.split("}", 1)[0]))
    assert tuple(light[f"ramp-{stop}"] for stop in range(4)) == RAMP
    own = (INK, QUIET, LINE, PAPER, ACCENT)
    assert own == tuple(light[name] for name in ("ink", "quiet", "line", "card", "accent"))
    assert colour_at(0) == RAMP[0] and colour_at(1) == RAMP[3]


def test_pixels_and_widths() -> None:
    image = np.zeros((3, 5, 3), dtype=np.uint8)
    assert png_of_pixels(image)[:8] == b"\x89PNG\r\n\x1a\n"
    assert text_width("mmm") > text_width("iii")
    assert text_width("中文") > text_width("ab")
    assert text_width("e\u0301") == text_width("e")


def test_ink_is_readable_on_its_colour() -> None:
    assert (ink_on(0), ink_on(1)) == (INK, PAPER)


def test_texts_are_shortened_and_wrapped() -> None:
    assert shortened("abcdef", 4) == "abc…" and shortened("abcd", 4) == "abcd"
    lines = wrapped("one two three four", text_width("one two", 11) + 1, 11)
    assert lines[0] == "one two" and " ".join(lines) == "one two three four"


def test_notes_return_the_place_below_them() -> None:
    drawing = Drawing()
    assert draw_notes(drawing, ("one", "two"), 0, 100.0, 500) == 132
    assert texts(drawing.svg(10, 10, "<title>")) == ["one", "two"]
