"""Scripts and style sheets are read from the folder of assets."""

from __future__ import annotations

from clearhead.views.page.files import asset, style


def test_a_style_sheet_stands_behind_the_colours_and_the_buttons() -> None:
    found = style("why.css")
    places = [found.index(asset(name)) for name in ("colours.css", "tools.css", "why.css")]
    assert places == sorted(places)
