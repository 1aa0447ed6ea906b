"""The page of a look: its address, its map as a file, its landmarks; long texts."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clearhead.views.numbers import weight_text
from clearhead.views.page.html import html_page
from tests.shared.chromium import page_at
from tests.shared.made_looks import made_look
from tests.shared.told_looks import told_look

pytestmark = pytest.mark.browser


def ready(page: Any) -> None:
    page.wait_for_selector("[data-ready]")


def test_a_link_shows_the_same_again(tmp_path: Path) -> None:
    look = made_look(word="they", head="L1H4")
    with page_at(tmp_path, html_page(look)) as page:
        ready(page)
        page.locator(".toolbar select").nth(1).select_option(label="\u2003L2H3")
        page.locator(".toolbar select").nth(0).select_option("4")
        page.wait_for_function("location.hash.includes('word=4')")
        state, said = page.evaluate("location.hash"), page.locator(".headline").inner_text()
        assert "head=L2H3" in state and "pool=max" in state
        page.goto("about:blank")
        page.goto((tmp_path / "page.html").as_uri() + state)
        ready(page)
        assert page.locator(".headline").inner_text() == said
        assert [page.locator(tag).count() for tag in ("main", "h1", "header")] == [1, 1, 1]


def test_the_map_as_files_has_the_numbers_of_the_picture(tmp_path: Path) -> None:
    look = made_look(word="they", head="L1H4")
    picture = look.head("L1H4")
    with page_at(tmp_path, html_page(look)) as page:
        ready(page)
        for kind in ("SVG", "PNG"):
            with page.expect_download() as download:
                page.locator("header button", has_text=kind).click()
            assert download.value.suggested_filename == f"L1H4.{kind.lower()}"
            download.value.save_as(tmp_path / kind)
    drawn = re.findall(r'text-anchor="middle"[^>]*>(\.\d\d|1\.00)<', (tmp_path / "SVG").read_text())
    wanted = [
        weight_text(float(picture.weights[place])).removeprefix("0")
        for place in np.ndindex(*picture.weights.shape)
        if picture.visible[place] and place[1] not in picture.hidden
        and picture.weights[place] >= 0.005
    ]  # fmt: skip
    assert drawn == wanted and len(drawn) > 30
    width, height = struct.unpack(">II", (tmp_path / "PNG").read_bytes()[16:24])
    assert width > 200 and height > 200


def test_arcs_of_a_long_text_cross_no_other_line(tmp_path: Path) -> None:
    """At most from one line to the next; what is not drawn keeps its colour and number."""
    look = told_look("causal", 9).look
    with page_at(tmp_path, html_page(look), width=400) as page:
        ready(page)
        page.locator(".toolbar select").nth(0).select_option(str(len(look.rows) - 2))
        tops = page.evaluate(
            """() => [...document.querySelectorAll(".arcs path.arc")].map((arc) =>
            ["from", "to"].map((end) => document.querySelector(
            `.word[data-place="${arc.dataset[end]}"]`).getBoundingClientRect()).map((box) =>
            [box.top, box.height]))"""
        )
        assert all(abs(a[0] - b[0]) <= 2.5 * a[1] for a, b in tops)
        assert page.locator(".arcs text.value").count() >= 3
