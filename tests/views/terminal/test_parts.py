from __future__ import annotations

import pytest
from rich.cells import cell_len

from clearhead.views.terminal.parts import Drawn, bar, cut, ink, level, padded, paint, shade


def test_bars_shades_and_cuts() -> None:
    assert bar(0.5, 4) == "██" and bar(0.03125, 4) == "▏" and bar(0.0, 4) == ""
    assert [shade(x) for x in (0.0, 0.04, 0.2, 0.5, 0.7, 1.0)] == [" ", " ", "░", "▒", "▓", "█"]
    assert cut("abcdef", 4) == "abc…" and cell_len(cut("你好世界", 5)) <= 5
    assert padded("abcdef", 4) == "abc…" and cell_len(padded("你", 5)) == 5


def test_levels_are_linear_or_logarithmic() -> None:
    assert level(0.1, 1.0, "log") == pytest.approx(3 / 4)
    assert level(0.3, 0.6) == 0.5 and level(0.0, 0.0) == 0.0


def test_colours_go_from_grey_to_blue() -> None:
    faint, strong = ink(0.0).color, paint(1.0).bgcolor
    assert faint is not None and faint.name == "#6b7280"
    assert strong is not None and strong.name == "#4f74f9"


def test_a_picture_is_drawn_for_its_width() -> None:
    drawn = Drawn(lambda width: [f"{width} columns"])
    assert drawn.plain(37) == "37 columns" and drawn.parts(41) == ["41 columns"]
