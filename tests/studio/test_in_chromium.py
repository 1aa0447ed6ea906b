"""The live page in a real browser, with a tiny model: typing, writing, why, maps, a broken line."""

import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import clearhead as ch
from clearhead.explain.make_look import make_look
from clearhead.studio import looking
from clearhead.studio.studio import Studio
from tests.shared import chromium
from tests.shared.explain_models import decoder
from tests.shared.ports import free_port
from tests.studio.heard import TEXT, serving

pytestmark = [pytest.mark.browser, pytest.mark.slow]
SECONDS = chromium.PATIENCE


@contextmanager
def opened(studio: Studio, address: str = "", **options: Any) -> Iterator[Any]:
    """The page; errors of its scripts, refused contents and requests to elsewhere fail."""
    browser = chromium._browser()
    if browser is None:
        pytest.skip(chromium.NONE)
    size = {"width": options.pop("width", 1280), "height": 900}
    context = browser.new_context(viewport=size, accept_downloads=True, **options)
    context.set_default_timeout(SECONDS)
    page = context.new_page()
    errors: list[str] = []

    def ran(dialog: Any) -> None:
        errors.append(dialog.message)
        dialog.dismiss()

    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("dialog", ran)
    page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    page.on("request", lambda request: errors.append(request.url)
            if not request.url.startswith((studio.url, "data:", "blob:")) else None)  # fmt: skip
    try:
        page.goto(studio.url + (address or f"#model=tiny&text={TEXT}"))
        page.wait_for_selector(".pane[data-drawn]")
        yield page
        assert [one for one in errors if "ERR_CONNECTION_REFUSED" not in one] == []
    finally:
        context.close()


def test_type_look_write_and_ask_why() -> None:
    """The way of a newcomer, with the keyboard alone."""
    with serving() as studio, opened(studio) as page:
        field = page.get_by_label("Text", exact=True)
        field.focus()
        page.keyboard.press("End")
        page.keyboard.type(" and the door")
        page.wait_for_selector("#studio[data-latency]")
        words = page.locator(".sentence .word").all_inner_texts()
        assert [word.strip() for word in words][-2:] == ["the", "door"]
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")  # Write on
        page.wait_for_selector(".writing[data-ended]")
        count = page.locator(".chip").count()
        assert count > 1
        page.locator(".chip").nth(1).focus()
        page.keyboard.press("Enter")
        page.wait_for_selector(".token-detail button:text('instead')")
        page.get_by_text("its query looked at").wait_for()
        page.locator(".token-detail button:text('instead')").first.focus()
        page.keyboard.press("Enter")
        page.wait_for_selector(".branch")
        page.wait_for_selector(".writing[data-ended]")
        page.locator(".predictions .ask").first.focus()
        page.keyboard.press("Enter")
        page.wait_for_selector(".why-live[data-ready]")
        page.locator(".why-heads input").first.focus()
        page.keyboard.press("Space")
        page.wait_for_selector(".why-live[data-continued]")
        rows = page.locator(".without tbody tr")
        assert rows.count() >= 5 and page.locator(".verdict").inner_text().startswith("Without L")
        page.locator(".edge").first.focus()
        page.keyboard.press("Enter")
        page.wait_for_selector(".off-chip >> nth=1")
        page.wait_for_selector(".why-live[data-continued]")
        follows = "() => location.hash.includes('%3C') && location.hash.includes('ids=')"
        page.wait_for_function(follows)  # the address: the edge was the last change
        address = page.url
        with opened(studio, address.partition("#")[1] + address.partition("#")[2]) as again:
            again.wait_for_selector(".why-live[data-continued]")
            assert again.locator(".off-chip").count() == 2
            assert again.locator(".verdict").inner_text() == page.locator(".verdict").inner_text()


def test_sliders_act_on_what_is_shown() -> None:
    with serving() as studio, opened(studio, f"#model=tiny&text={TEXT}&t=1") as page:
        page.get_by_role("button", name="Write on").click()
        page.wait_for_selector(".writing[data-ended]")
        page.locator(".chip").first.click()
        page.get_by_text("its query looked at").wait_for()
        shares = page.locator(".token-detail tbody tr td:nth-child(4)")
        before = shares.first.inner_text()
        page.locator(".writing-controls [data-setting=temperature]").fill("0.5")
        after = shares.first.inner_text()
        assert float(after) > float(before)
        page.locator(".writing-controls [data-setting=topK]").fill("0")  # the likeliest alone
        assert shares.all_inner_texts()[:2] == ["1.0000", "out"]


def test_saving_and_python(tmp_path: Path) -> None:
    with serving() as studio, opened(studio) as page:
        page.get_by_role("button", name="Take it along").click()
        assert "ch.look(loaded" in page.locator(".python").inner_text()
        for name in ("Page", "SVG", "PNG", "CSV", "JSON"):
            with page.expect_download() as download:
                page.locator(".taking").get_by_role("button", name=name, exact=True).click()
            path = tmp_path / download.value.suggested_filename
            download.value.save_as(path)
            assert path.stat().st_size > 200


def test_two_sides_with_linked_pointers() -> None:
    with serving() as studio, opened(studio) as page:
        page.get_by_role("button", name="Compare").click()
        page.wait_for_selector(".comparison[data-ready]")
        second = page.get_by_label("Second text", exact=True)
        second.fill(TEXT.replace("books", "door"))
        page.wait_for_selector(".pane:nth-child(2) .word:text('door')")
        page.locator(".pane:nth-child(1) .word").nth(2).hover()
        page.wait_for_selector(".pane:nth-child(2) .word.current[data-place='2']")


def test_a_long_text_down_to_single_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking, "MOST_TOKENS", 5)
    address = f"#model=tiny&text={TEXT}"
    with serving() as studio:
        browser = chromium._browser()
        if browser is None:
            pytest.skip(chromium.NONE)
        page = browser.new_context().new_page()
        page.set_default_timeout(SECONDS)
        page.goto(studio.url + address)
        page.wait_for_selector(".map-live[data-ready] [data-loaded=true]")
        page.wait_for_selector(".zoom-strongest button")
        page.locator(".zoom-strongest button").first.click()
        page.wait_for_selector(".zoom-status:text('single weight')")
        page.get_by_text("Draw the small maps").click()
        page.wait_for_selector(".zoom-gallery [role=listitem] >> nth=7")
        page.context.close()


def test_a_broken_line_is_mended_and_a_slow_job_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    studio = ch.studio(decoder(), port=free_port())
    with opened(studio) as page:
        token, port = studio._token, studio.port
        studio.close()
        page.wait_for_selector("#studio[data-line=lost]")
        monkeypatch.setattr("secrets.token_urlsafe", lambda _: token)

        def slow(*arguments: Any, **options: Any) -> None:
            job = arguments[3]
            for step in itertools.count():  # until somebody stops it
                job.progress(step % 100, 100, "waiting")
                time.sleep(0.05)

        monkeypatch.setattr(looking, "show_look", slow)
        with ch.studio(decoder(), port=port):
            page.wait_for_selector("#studio[data-line=open]")
            page.wait_for_selector(".bar-of-work:not([hidden])")
            page.get_by_role("button", name="Stop").click()
            page.get_by_text("Stopped.").wait_for()


def test_hostile_texts_are_shown_and_never_run() -> None:
    bad = "<img src=x onerror=alert(1)> </script><script>alert(2)</script> \u202e"
    with serving() as studio, opened(studio) as page:
        page.get_by_label("Text", exact=True).fill(bad)
        page.wait_for_selector("#studio[data-latency]")
        assert "<img" in page.locator(".sentence").inner_text().replace(" ", "")
        assert page.locator(".view img").count() == 0


def test_narrow_wide_light_and_dark() -> None:
    with serving() as studio:
        for width, scheme in ((400, "light"), (400, "dark"), (1920, "dark")):
            check_shape(studio, width, scheme)


def check_shape(studio: Studio, width: int, scheme: str) -> None:
    """Nothing is cut off, the colours are those of the scheme, and every control has a name."""
    address = f"#model=tiny&text={TEXT}&why=3.7&off=L1H2"
    with opened(studio, address, width=width, color_scheme=scheme) as page:
        page.wait_for_selector(".why-live[data-continued]")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        paper = page.evaluate("getComputedStyle(document.getElementById('studio')).backgroundColor")
        assert (paper == "rgb(20, 22, 27)") is (scheme == "dark")
        nameless = page.evaluate(
            "[...document.querySelectorAll('button, input, select, textarea')].filter((one) => "
            "one.checkVisibility() && !(one.innerText || one.getAttribute('aria-label') || "
            "one.title || one.labels?.[0]?.innerText)).map((one) => one.outerHTML)"
        )
        assert nameless == []


def test_a_trace_and_a_translator() -> None:
    seen = make_look(decoder(), TEXT).seen
    with serving(seen, ch.load("dates")) as studio, opened(studio, "#model=trace") as page:
        assert page.get_by_label("Text", exact=True).is_disabled()
        page.get_by_label("Model", exact=True).select_option("dates")
        page.get_by_label("Text", exact=True).fill("3rd of March 2021")
        page.wait_for_selector(".sentence.two-lines")
