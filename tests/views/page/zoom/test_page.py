from __future__ import annotations

import json
import re

from clearhead.explain.long_map import long_map
from clearhead.explain.zoom.zoomed_map import ZoomedMap
from clearhead.views.page.html import html_page
from clearhead.views.page.zoom.page import PAGE, SCRIPTS, map_fragment
from tests.shared.told_looks import told_look


def test_the_page_says_what_it_holds() -> None:
    picture = long_map(told_look("causal", 3).look, "L1H1", size=7)
    html = html_page(picture)
    meta = json.loads(re.findall(r"data-meta>(.*?)</script>", html, re.S)[0])
    assert meta["tiles"]["rows"] == 36 and meta["tiles"]["head"] == "L1H1"
    assert "Every single weight is in this file, rounded to four decimals." in meta["notes"]
    assert not any(note.startswith("A cell holds") for note in meta["notes"])
    assert meta["tiles"]["axes"] == {"rows": "axis-rows", "columns": "axis-rows"}
    assert set(SCRIPTS) < set(PAGE)


def test_text_from_outside_is_no_markup() -> None:
    look = told_look("causal", 1).look
    picture = long_map(look, "L1H1")
    object.__setattr__(picture, "text", "</script><img src=x onerror=alert(1)>")
    object.__setattr__(picture, "model", "</script><b>")
    assert isinstance(picture.zoom, ZoomedMap)
    html = map_fragment(picture, picture.zoom)
    assert "<img" not in html and "</script><b>" not in html
