"""The page as people use it: pointed at, clicked, typed at, in a real browser without a network."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from clearhead.explain.look import Look
from clearhead.explain.pictures import Aids
from clearhead.views.notebook import notebook_html
from clearhead.views.page.html import html_fragment, html_page
from tests.shared.chromium import page_at
from tests.shared.made_looks import SENTENCE, made_look, translated_look, written_look

pytestmark = pytest.mark.browser

WORD = 9  # "they"
HEAD = "L1H4"  # looks eight words back


@pytest.fixture(scope="module")
def look() -> Look:
    return made_look(word="they", head=HEAD)


@pytest.fixture(scope="module")
def html(look: Look) -> str:
    return html_page(look)


def ready(page: Any) -> None:
    page.wait_for_selector("[data-ready]")


def arcs(page: Any) -> list[tuple[int, int]]:
    found = page.locator(".arc").all()
    return [(int(a.get_attribute("data-from")), int(a.get_attribute("data-to"))) for a in found]


def word(page: Any, place: int) -> Any:
    return page.locator(f'.word[role="button"][data-place="{place}"]')


def test_it_opens_at_the_chosen_word_with_the_picture_s_numbers(
    tmp_path: Path, look: Look, html: str
) -> None:
    picture = look.word(WORD, HEAD)
    with page_at(tmp_path, html) as page:
        ready(page)
        most = f"{picture.sources[0].weight:.2f} of its attention in head {HEAD}."
        assert page.locator(".headline").inner_text() == f"they looks most at kids: {most}"
        shown = [
            (bar.locator(".bar-name").inner_text(), bar.locator(".number").inner_text())
            for bar in page.locator(".bar").all()
        ]
        wanted = [(one.mark.text, f"{one.weight:.2f}") for one in picture.sources]
        assert shown == [pair for pair in wanted if float(pair[1]) > 0][: len(shown)]
        assert arcs(page)[-1][0] == WORD and (WORD, 1) in arcs(page)
        assert page.locator(".arcs .value").first.inner_html() == f"{picture.sources[0].weight:.2f}"
        assert "✓ Proved exact: 3 layers" in page.locator(".stamp").inner_text()
        assert "by itself it is not an explanation" in page.locator(".caveat").inner_text()


def test_pointing_shows_a_word_and_leaving_returns(tmp_path: Path, html: str) -> None:
    with page_at(tmp_path, html) as page:
        ready(page)
        word(page, 12).hover()
        assert {row for row, _ in arcs(page)} == {12}
        assert page.locator(".headline .query").inner_text() == "away"
        page.mouse.move(5, 5)
        assert {row for row, _ in arcs(page)} == {WORD}


def test_clicks_pin_several_words(tmp_path: Path, html: str) -> None:
    with page_at(tmp_path, html) as page:
        ready(page)
        word(page, 12).click()
        word(page, 10).click()
        page.mouse.move(5, 5)
        assert {row for row, _ in arcs(page)} == {10, 12}
        assert page.locator(".word.pinned").all_inner_texts() == ["left", "away"]
        assert word(page, 12).get_attribute("aria-pressed") == "true"
        word(page, 12).click()
        word(page, 11).hover()
        assert page.locator(".word.pinned").all_inner_texts() == ["left"]
        page.keyboard.press("Escape")
        assert page.locator(".word.pinned").count() == 0


def test_the_keyboard_does_everything(tmp_path: Path, html: str) -> None:
    with page_at(tmp_path, html) as page:
        ready(page)
        page.keyboard.press("ArrowRight")
        assert page.locator(".word.current").inner_text() == "left"
        page.keyboard.press("Enter")
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("ArrowLeft")
        assert page.locator(".word.current").inner_text() == "so"
        assert page.locator(".word.pinned").all_inner_texts() == ["left"]
        page.keyboard.press("]")
        page.wait_for_function("document.querySelector('.heatmap h2').textContent === 'Head L1H5'")
        page.keyboard.press("[")
        page.keyboard.press("[")
        page.wait_for_function("document.querySelector('.heatmap h2').textContent === 'Head L1H3'")
        page.keyboard.press("0")
        page.wait_for_function(
            "document.querySelector('.heatmap h2').textContent.includes('18 heads')"
        )
        page.keyboard.press("?")
        assert page.locator(".help").is_visible()
        page.keyboard.press("Escape")
        assert not page.locator(".help").is_visible()
        assert page.locator(".word.pinned").count() == 0


def test_cells_tell_their_numbers_and_open_their_steps(
    tmp_path: Path, look: Look, html: str
) -> None:
    weights = look.head(HEAD).weights
    with page_at(tmp_path, html) as page:
        ready(page)
        page.locator("canvas.map").scroll_into_view_if_needed()
        box = page.locator("canvas.map").bounding_box()
        x, y = cell_at(page, WORD, 1)
        page.mouse.move(box["x"] + x, box["y"] + y)
        assert page.locator(".tooltip").inner_text().split("\n") == [
            "they → kids", f"{weights[WORD, 1]:.4f}",
        ]  # fmt: skip
        page.mouse.click(box["x"] + x, box["y"] + y)
        page.wait_for_selector(".steps table")
        cells = page.locator(".steps tr.marked").inner_text().split("\t")
        table = look.steps(HEAD, WORD)
        assert cells[0] == "kids"
        assert cells[3:6] == [
            f"{table.rows[1].score:.2f}", f"{table.rows[1].scaled:.2f}",
            f"{table.rows[1].weight:.2f}",
        ]  # fmt: skip
        assert page.locator(".steps thead").inner_text().split("\t")[4] == "score/2"
        assert "−∞ future" in page.locator(".steps tbody tr").last.inner_text()
        foot = page.locator(".steps tfoot").inner_text()
        assert "1.00" in foot and f"{table.output[0]:.2f}".replace("-", "−") in foot


def cell_at(page: Any, row: int, column: int) -> tuple[float, float]:
    """Where a cell of the map is: cells begin after the longest name, at the canvas's right end."""
    size = page.evaluate(
        """() => { const c = document.querySelector('canvas.map'), p = c.getContext('2d');
        p.setTransform(1, 0, 0, 1, 0, 0);
        p.font = '12px ' + getComputedStyle(document.querySelector('.clearhead')).fontFamily;
        const words = [...document.querySelectorAll('.word')].map((word) => word.textContent);
        const widths = words.map((word) => p.measureText(word).width);
        return [Math.max(...widths), parseFloat(c.style.height)]; }"""
    )
    left, above = int(-(-size[0] // 1)) + 12, int(-(-size[0] * 0.78 // 1)) + 18
    cell = (size[1] - above - 4) / 14
    return left + (column + 0.5) * cell, above + (row + 0.5) * cell


def test_switches_and_pickers(tmp_path: Path, html: str) -> None:
    with page_at(tmp_path, html) as page:
        ready(page)
        assert "hidden" in (word(page, 0).get_attribute("class") or "")
        page.locator(".switch", has_text="Hide first").click()
        assert "hidden" not in (word(page, 0).get_attribute("class") or "")
        page.locator(".switch", has_text="Log").click()
        assert "(log)" in page.locator(".legend").inner_text()
        page.locator("select").nth(1).select_option(label="all 18 heads")
        page.wait_for_function(
            "document.querySelector('.heatmap h2').textContent === 'max of all 18 heads'"
        )
        assert page.locator(".bars .head-link").count() > 3
        page.locator("select").nth(2).select_option("mean")
        page.wait_for_function(
            "document.querySelector('.heatmap h2').textContent === 'mean of all 18 heads'"
        )
        page.locator("select").nth(0).select_option(label="away")
        assert page.locator(".headline .query").inner_text() == "away"
        page.locator(".thumb[aria-label='Head L2H1']").click()
        page.wait_for_function("document.querySelector('.heatmap h2').textContent === 'Head L2H1'")


def test_light_and_dark(tmp_path: Path, html: str) -> None:
    def background(page: Any) -> tuple[int, ...]:
        colour = page.evaluate(
            "getComputedStyle(document.querySelector('.clearhead')).backgroundColor"
        )
        return tuple(map(int, re.findall(r"\d+", colour)))[:3]

    with page_at(tmp_path, html, dark=True) as page:
        ready(page)
        assert max(background(page)) < 40
        page.get_by_role("button", name="Light or dark").click()
        assert min(background(page)) > 240
        page.get_by_role("button", name="Light or dark").click()
        assert max(background(page)) < 40


def test_hostile_words_are_shown_and_not_run(tmp_path: Path) -> None:
    text = "a </script><script>alert(1)</script> <!-- ]]> <img src=x onerror=alert(2)> \"' \u2028 b"
    with page_at(tmp_path, html_page(made_look(text))) as page:
        ready(page)
        shown = page.locator(".words").inner_text()
        assert "</script><script>alert(1)</script>" in shown and "<!-- ]]>" in shown
        assert page.locator("img").count() == 0
        word(page, 2).click()
        page.locator(".bar").first.click()
        page.wait_for_selector(".steps table")


def test_two_views_in_one_page_do_not_meet(tmp_path: Path, look: Look) -> None:
    other = made_look("We saw him there, and later they saw us.", word="they")
    both = f"<!doctype html><body>{html_fragment(look)}{html_fragment(other)}</body>"
    with page_at(tmp_path, both) as page:
        page.wait_for_function("document.querySelectorAll('[data-ready]').length === 2")
        first, second = page.locator(".clearhead").all()
        assert page.locator("[id]").count() == 0
        before = first.locator(".headline").inner_text()
        second.locator('.word[data-place="3"]').click()
        page.keyboard.press("ArrowRight")
        assert first.locator(".word.pinned").count() == 0
        assert second.locator(".word.pinned").count() == 1
        assert first.locator(".headline").inner_text() == before


def test_two_thousand_words_open(tmp_path: Path) -> None:
    html = html_page(made_look("alpha beta gamma, delta epsilon " * 334, layers=1, word=1900))
    assert len(html) < 15_000_000
    with page_at(tmp_path, html) as page:
        ready(page)
        assert page.locator(".word").count() == 2004
        current = page.locator(".word.current")
        assert current.get_attribute("data-place") == "1900"
        inside = current.bounding_box()["y"] - page.locator(".sentence").bounding_box()["y"]
        assert 0 < inside < 800
        assert page.locator("canvas.overview").is_visible()
        page.locator("canvas.overview").click(position={"x": 30, "y": 60})
        assert "words 5" in page.locator(".heatmap p").first.inner_text()


def test_encoder_decoder_shows_two_lines(tmp_path: Path) -> None:
    with page_at(tmp_path, html_page(translated_look())) as page:
        ready(page)
        assert page.locator(".line-title").all_inner_texts() == ["Source", "Written"]
        assert page.locator(".line").nth(0).inner_text().endswith("le chat noir dort")
        assert len(arcs(page)) > 0
        page.locator("select").nth(1).select_option(label="\u2003E0H1")
        page.wait_for_function("document.querySelectorAll('.line').length === 1")


def test_what_was_written_leads_to_the_query_that_wrote_it(tmp_path: Path) -> None:
    look = written_look()
    place = 10  # "left"; the query that wrote it is "they", and L1H4 looks eight words back
    one = next(one for one in look.generated if one.text == "left")
    source = next(source for source in one.sources if source.head == "L1H4")
    assert one.position == place and source.mark.text == "kids"
    with page_at(tmp_path, html_page(look)) as page:
        ready(page)
        assert page.locator(".word.by-model").first.inner_text() == "scared"
        assert page.locator(".written tbody tr").count() == len(look.generated) == 11
        row = page.locator(".written tbody tr").nth(place - 3)
        cells = row.locator("th, td").all_inner_texts()
        assert cells[:2] == ["left", "0.50"]
        assert f"kids {source.weight:.2f} L1H4" in cells[2]
        row.get_by_role("button", name="L1H4").click()
        page.wait_for_function("document.querySelector('.heatmap h2').textContent === 'Head L1H4'")
        said = f"they looks most at kids: {source.weight:.2f} of its attention in head L1H4."
        page.wait_for_function(
            "said => document.querySelector('.headline').textContent === said", arg=said
        )
        assert "marked" in (row.get_attribute("class") or "")


def test_written_tokens_by_keyboard(tmp_path: Path) -> None:
    with page_at(tmp_path, html_page(written_look()), width=400) as page:
        ready(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        page.locator(".written .token").nth(4).focus()
        page.keyboard.press("Enter")
        assert page.locator(".headline .query").inner_text() == "lions"  # which wrote the comma
        assert page.locator(".written tr.marked th").inner_text() == ","
        assert page.locator(".word.pinned").count() == 0
        page.keyboard.press("ArrowRight")
        assert page.locator(".written tr.marked th").inner_text() == "so"


def test_dates_are_aligned_with_what_was_read(tmp_path: Path) -> None:
    import clearhead as ch

    look = ch.look(ch.load("dates"), "3rd of March 2021").insight
    with page_at(tmp_path, html_page(look), dark=True) as page:
        ready(page)
        headline = page.locator(".headline").inner_text()
        assert headline.startswith("2021 looks most at 2021 in the source: 1.00")
        written = page.locator(".line").nth(1)
        months = written.locator(".word").nth(2)
        assert months.inner_text() == "03"
        aligned = {
            (arc.get_attribute("data-from"), arc.get_attribute("data-to"))
            for arc in page.locator(".arc.aligned").all()
        }
        assert ("2", "4") in aligned  # 03 and March, while 2021 is shown
        months.click()
        assert "03 looks most at March in the source" in page.locator(".headline").inner_text()
        assert page.locator(".written tr.marked th").all_inner_texts() == ["0", "3"]
        assert page.locator(".legend").inner_text().split() == ["0", "1.00", "weight"]
        page.locator("select").nth(1).select_option(label="\u2003E0H1")
        page.wait_for_function("document.querySelectorAll('.line').length === 1")
        assert page.locator(".written tr.marked").count() == 0
        page.locator(".written .token").first.click()  # leads back to where it was written
        page.wait_for_function("document.querySelectorAll('.line').length === 2")
        assert page.locator(".headline .query").inner_text() == "2021"


@pytest.mark.parametrize(
    ("text", "direction"),
    [
        ("הילדים פחדו מן האריות ולכן הם ברחו מיד משם", "rtl"),
        ("我们 在 看 🙂 一 个 句子", "ltr"),
        ("one", "ltr"),
        (f"{'x' * 400} and {'y' * 90} more", "ltr"),
    ],
)
def test_any_writing_fits(tmp_path: Path, text: str, direction: str) -> None:
    with page_at(tmp_path, html_page(made_look(text)), width=400) as page:
        ready(page)
        style = "getComputedStyle(document.querySelector('.words')).direction"
        assert page.evaluate(style) == direction
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        first = page.locator(".word").first.bounding_box()
        if direction == "rtl":
            assert first["x"] > page.locator(".word").nth(1).bounding_box()["x"]
            now = page.locator(".word.current").get_attribute("data-place")
            page.keyboard.press("ArrowRight")
            assert page.locator(".word.current").get_attribute("data-place") == str(int(now) - 1)


def test_a_single_head_and_pictures_are_pages_too(tmp_path: Path, look: Look) -> None:
    with page_at(tmp_path, html_page(look.head(HEAD))) as page:
        ready(page)
        assert page.locator(".heatmap h2").inner_text() == f"Head {HEAD}"
        assert not page.locator(".gallery").is_visible()
        page.locator(".bar").first.click()
        page.wait_for_selector(".steps table")
    with page_at(tmp_path, html_page(look.gallery())) as page:
        assert page.locator("svg text", has_text="All 18 heads").is_visible()


def test_notebook_output_lives_in_frames_of_its_own(tmp_path: Path, look: Look) -> None:
    cells = notebook_html(look) + notebook_html(look) + notebook_html(look.word(WORD))
    assert "<script" not in cells.replace("&lt;script", "")
    with page_at(tmp_path, f"<!doctype html><body>{cells}</body>") as page:
        for number in range(2):
            frame = page.frame_locator("iframe").nth(number)
            frame.locator("[data-ready]").wait_for()
            assert "they looks most at kids" in frame.locator(".headline").inner_text()
        page.frame_locator("iframe").nth(0).locator('.word[data-place="12"]').click()
        assert page.frame_locator("iframe").nth(1).locator(".word.pinned").count() == 0
        assert [image.is_visible() for image in page.locator("img").all()] == [False, False, True]


def test_a_notebook_that_is_not_trusted_shows_still_pictures(tmp_path: Path, look: Look) -> None:
    """What JupyterLab 4.6 leaves of an output that it does not trust: no frame, no style."""
    cell = re.sub("<style>.*?</style>|<iframe .*?</iframe>", "", notebook_html(look), flags=re.S)
    assert "<iframe" not in cell and "<style" not in cell and "<svg" not in cell
    with page_at(tmp_path, f"<!doctype html><body>{cell}</body>") as page:
        image = page.locator("img")
        assert image.is_visible() and image.evaluate("image => image.naturalWidth") > 300
        assert "this notebook is not trusted" in page.locator("p").inner_text()


@pytest.mark.parametrize(("head", "title"), [("all", "max of all 18 heads"), ("L2", "max of L2")])
def test_several_heads_can_be_chosen(tmp_path: Path, head: str, title: str) -> None:
    with page_at(tmp_path, html_page(made_look(word="they", head=head))) as page:
        ready(page)
        assert page.locator(".heatmap h2").inner_text() == title
        assert page.locator(".reason").inner_text().startswith("Word and head were chosen")


def test_aids_of_the_look_are_the_switches(tmp_path: Path) -> None:
    aids = Aids(hide="nothing", colour="log", pool="mean")
    with page_at(tmp_path, html_page(made_look(SENTENCE, aids=aids))) as page:
        ready(page)
        boxes = page.locator(".switch input").all()
        assert [box.is_checked() for box in boxes] == [False, True]
        assert page.locator("select").nth(2).input_value() == "mean"
