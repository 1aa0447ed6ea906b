"""The page of roles as people use it: clicked, typed at, narrow, dark, twice in a notebook."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from clearhead.explain.roles.corpus.built_in_text import made_sentences
from clearhead.explain.roles.planted import planted_model
from clearhead.views.roles.shown import ShownRoles, roles
from clearhead.views.roles.text import percent
from tests.shared.chromium import page_at

pytestmark = pytest.mark.browser

WANTED = ["previous token", "same token", "parts of speech"]


@cache
def shown() -> ShownRoles:
    sentences = list(made_sentences(67))
    return roles(planted_model(sentences), sentences, properties=WANTED, interventions=1)


def html() -> str:
    return str(shown().html())


OPEN = """(heads) => `${heads}` === `${[...document.querySelectorAll("details[open] .head")].map(
    (head) => head.innerText)}`"""


def opened(page: Any, *heads: str) -> None:
    """The evidence of these heads is open, or will be; that of no others."""
    page.wait_for_function(OPEN, arg=list(heads))


def in_view(page: Any, selector: str) -> bool:
    box = page.locator(selector).bounding_box()
    height = page.evaluate("innerHeight")
    return bool(box and -1 <= box["y"] <= height - min(box["height"], 40))


def test_a_click_on_the_map_shows_the_evidence(tmp_path: Path) -> None:
    with page_at(tmp_path, html(), height=420) as page:
        opened(page)
        page.locator("nav a", has_text="B").first.click()
        opened(page, "L0H1")
        assert in_view(page, "details[open] summary") and in_view(
            page, "#role-L0H1 blockquote >> nth=0"
        )
        assert in_view(page, "nav table")  # the map stays beside it
        page.locator("details[open] summary").click()
        opened(page)
        page.locator('nav a[href="#role-L0H1"]').click()  # the address does not change now
        opened(page, "L0H1")


def test_the_keyboard_does_the_same(tmp_path: Path) -> None:
    with page_at(tmp_path, html(), height=420) as page:
        page.locator('[data-save="svg"]').focus()  # the last button before the map
        page.keyboard.press("Tab")
        focused = page.locator("nav a:focus")
        assert focused.get_attribute("aria-label").startswith(
            "L0H0: the word before (previous token), accuracy 100 %"
        )
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        opened(page, "L0H1")
        page.locator("summary").first.focus()
        page.keyboard.press("Space")
        opened(page, "L0H0", "L0H1")


def test_a_link_to_a_role_opens_it(tmp_path: Path) -> None:
    with page_at(tmp_path, html()) as page:
        page.goto(page.url + "#role-L0H2")
        opened(page, "L0H2")
        assert "every VERB" in page.locator("details[open] summary").inner_text()


@pytest.mark.parametrize("dark", [False, True])
def test_narrow_screens_have_everything(tmp_path: Path, dark: bool) -> None:
    with page_at(tmp_path, html(), width=400, dark=dark) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        page.locator("nav a").first.click()
        role = shown().named[0]
        told = page.locator("details[open] .evidence").inner_text()
        low, high = role.confirmed.interval
        assert (
            f"({100 * low:.0f} … {percent(high)})" in told
            and f"{role.confirmed.cases:,} cases" in told
        )
        page.locator("details[open] .back a").click()
        assert in_view(page, "nav table")


@pytest.mark.parametrize("width", [400, 1280])
def test_heads_behind_a_click_are_there_on_every_screen(
    tmp_path: Path, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a role with many heads the rest; the words beside the sign that opens it, not under it."""
    monkeypatch.setattr("clearhead.views.roles.html.FIRST_SHOWN", 0)
    with page_at(tmp_path, html(), width=width) as page:
        more = page.locator("details.more > summary").first
        assert more.is_visible()
        sign = page.evaluate(
            """() => { const one = document.querySelector("details.more > summary");
            return [parseFloat(getComputedStyle(one, "::before").left),
                    parseFloat(getComputedStyle(one).paddingLeft)] }"""
        )
        assert sign[0] + 8 <= sign[1]
        more.click()
        assert page.locator("details.more[open] .row").first.is_visible()


def test_letters_can_be_read_in_both_schemes(tmp_path: Path) -> None:
    """WCAG's contrast of 4.5 for every shade, of every cell."""
    script = """() => {
        const light = text => {
            const parts = text.match(/[0-9.]+/g).slice(0, 3).map(part => {
                const share = part / 255;
                return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
            });
            return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
        };
        return [0, 1, 2, 3, 4].map(shade => {
            const cell = document.querySelector("td");
            cell.className = `shade-${shade}`;
            const style = getComputedStyle(cell);
            const pair = [light(style.color), light(style.backgroundColor)].sort((a, b) => b - a);
            return (pair[0] + 0.05) / (pair[1] + 0.05);
        });
    }"""
    for dark in (False, True):
        with page_at(tmp_path, html(), dark=dark) as page:
            assert min(page.evaluate(script)) >= 4.5


def test_two_in_a_notebook_do_not_meet(tmp_path: Path) -> None:
    cells = shown()._repr_mimebundle_()["text/html"] * 2
    with page_at(tmp_path, f"<!doctype html><body>{cells}</body>", height=1600) as page:
        first, second = (page.frame_locator("iframe").nth(number) for number in range(2))
        second.locator("nav a").nth(1).click()
        second.locator("details[open]").wait_for()
        assert second.locator("details[open] .head").inner_text() == "L0H1"
        assert second.locator("#role-L0H1 blockquote").first.is_visible()
        assert first.locator("details[open]").count() == 0
        assert second.locator("nav").is_visible()  # the frame still shows the page
