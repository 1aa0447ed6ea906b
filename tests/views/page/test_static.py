"""Pages that are drawn once: names, landmarks, address, and pictures of what is on the screen."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from clearhead.explain.difference import make_difference
from clearhead.explain.worked_examples import worked_example
from clearhead.views.page.html import html_page
from clearhead.views.page.static import header, script
from tests.shared.chromium import page_at
from tests.shared.explained_models import shown_why
from tests.shared.made_looks import made_look
from tests.shared.planted_roles import shown
from tests.shared.told_looks import told_look

PAGES: dict[str, Callable[[], str]] = {
    "steps": lambda: html_page(worked_example("action")[0]),
    "difference": lambda: html_page(
        make_difference(told_look("causal").look, told_look("window").look)
    ),
    "gallery": lambda: html_page(made_look().gallery()),
    "word": lambda: html_page(made_look().word("they", "L1H4")),
    "roles": lambda: str(shown().html()),
    "why": lambda: str(shown_why().html()),
}


def test_the_header_names_each_model_once() -> None:
    found = header("what changed", "<a>", "<a>", "b")
    assert "what changed · &lt;a&gt; and b" in found
    assert 'hidden><button type="button" data-save="png"' in header("")  # until the script runs


def test_the_script_is_one_element() -> None:
    assert script().startswith("<script>") and script().count("<script") == 1


@pytest.fixture(params=PAGES)
def page(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    with page_at(tmp_path, PAGES[request.param](), width=400, dark=True) as found:
        yield found


@pytest.mark.browser
def test_landmarks_width_and_pictures(page: Any, tmp_path: Path) -> None:
    assert [page.locator(tag).count() for tag in ("main", "h1")] == [1, 1]
    assert page.locator("main header").count() == 1 and page.title().startswith("clearhead")
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    for kind, start in (("svg", b"<svg"), ("png", b"\x89PNG")):
        with page.expect_download() as download:
            page.locator(f'[data-save="{kind}"]').click()
        assert download.value.suggested_filename.endswith(f".{kind}")
        download.value.save_as(tmp_path / kind)
        assert (tmp_path / kind).read_bytes().startswith(start)
    width, height = struct.unpack(">II", (tmp_path / "png").read_bytes()[16:24])
    sizes = re.findall(r'(?:width|height)="([\d.]+)"', (tmp_path / "svg").read_text())[:2]
    assert [width, height] == [2 * round(float(one)) for one in sizes]


def page_texts(page: str, behind: str) -> set[str]:
    """Sentences that stand only where a reader has not opened them."""
    parts = "".join(re.findall(behind, page, re.DOTALL))
    found = {text.strip() for text in re.findall(r">([^<>]{12,})<", parts)}
    return {text for text in found if page.count(text) == parts.count(text)}


@pytest.mark.browser
def test_frames_meters_and_drawings_are_in_the_picture(tmp_path: Path) -> None:
    drawn = {}
    for name in ("difference", "why"):
        with page_at(tmp_path, PAGES[name]()) as page, page.expect_download() as download:
            page.locator('[data-save="svg"]').click()
            download.value.save_as(tmp_path / name)
            framed = page.locator(".map:visible .changed").count()
            meters = page.locator("meter:visible").count()
        drawn[name] = (tmp_path / name).read_text()
        assert drawn[name].count('stroke-width="2px"') == framed
        assert len(re.findall('rx="5"', drawn[name])) >= 2 * meters
        assert "color(" not in drawn[name] and "var(" not in drawn[name]
        closed = page_texts(PAGES[name](), r"</summary>(.*?)</details>")
        assert not closed & set(re.findall(r">([^<]+)</text>", drawn[name]))
    assert 'stroke-width="2px"' in drawn["difference"]
    assert drawn["why"].count("<svg") == 2  # the bars of the layers inside


@pytest.mark.browser
def test_the_address_holds_the_choice_and_the_picture_shows_it(tmp_path: Path) -> None:
    with page_at(tmp_path, PAGES["steps"]()) as page:
        page.locator(".queries label", has_text="gets").click()
        assert page.evaluate("location.hash") == "#query=1"
        drawn = page.evaluate("document.querySelectorAll('.panel')[1].innerText")
        page.evaluate("location.hash = '#query=2'")
        page.wait_for_function("document.querySelectorAll('.pick')[2].checked")
        assert page.locator(".panel:visible").inner_text() != drawn
        page.goto(page.url.split("#")[0] + "#query=1")
        page.reload()
        with page.expect_download() as download:
            page.locator('[data-save="svg"]').click()
        download.value.save_as(tmp_path / "steps.svg")
        texts = re.findall(r">([^<]+)</text>", (tmp_path / "steps.svg").read_text())
        assert "q of “gets” = [0.85 4.54 2.55 2.84]" in texts
        assert not any("q of “Action”" in text for text in texts)
