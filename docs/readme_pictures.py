"""The pictures in the README, made by clearhead: ``python docs/readme_pictures.py [NAME …]``.

``they.svg`` shows what one word attends to in one head. ``dates.svg`` shows cross-attention: what
the built-in model read while it wrote a date. ``why.svg`` shows which words and heads made a
prediction, ``patched.svg`` which of them carry what two texts differ in. ``roles.svg`` shows the
roles of minilm's heads.
``look.png`` is the interactive page, ``learn.png`` a figure of the course and ``studio.png`` the
live page, in Chromium (with ``playwright``).
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import clearhead as ch
from clearhead.explain.roles.corpus.built_in_text import made_sentences

FOLDER = Path(__file__).resolve().parent / "images"
SENTENCE = "The kids were scared of the lions, so they left right away."
DATE = "3rd of March 2021"
PROPERTIES = ["previous token", "same token", "punctuation", "names", "dates"]


def draw_word(out: Path) -> None:
    """What "they" attends to, in the head that ``look`` chooses."""
    ch.look(ch.load("smollm2"), SENTENCE).word("they", head="L16H5").save(out)


def draw_dates(out: Path) -> None:
    """Cross-attention of the built-in model: written words (rows) to the words that it read."""
    ch.look(ch.load("dates"), DATE).head("C0H0").save(out)


def draw_why(out: Path) -> None:
    """Why SmolLM2 says Paris and not London."""
    ch.why("smollm2", "The capital of France is", " Paris", " London").save(out)


def draw_patched(out: Path) -> None:
    """Which words, layers and heads turn Paris into Rome."""
    ch.patch_map("smollm2", "The capital of France is", "The capital of Italy is").save(out)


def draw_roles(out: Path) -> None:
    """Roles of minilm's heads on sentences that a small grammar writes."""
    ch.roles(ch.load("minilm"), list(made_sentences(211)), properties=PROPERTIES).save(out)


def photograph_page(out: Path) -> None:
    """The interactive page of a look."""
    with tempfile.TemporaryDirectory() as folder:
        page = ch.look(ch.load("smollm2"), SENTENCE).save(Path(folder) / "page.html")
        photograph(page.as_uri(), out, "[data-ready]", (1280, 1330))


def photograph_course(out: Path) -> None:
    """The figure of the first chapter of the course."""
    from clearhead.views.course.html import course_page

    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "learn.html"
        page.write_text(course_page(), encoding="utf-8")
        figure = "#one-query figure"
        photograph(f"{page.as_uri()}#one-query", out, f"{figure}[data-ready]", (1220, 900), figure)


def photograph_studio(out: Path) -> None:
    """The live page, with the sentence that it begins with."""
    with ch.studio(ch.load("smollm2")) as studio:
        photograph(studio.url, out, "[data-ready]", (1280, 1330), wait=6000)


def photograph(
    url: str, out: Path, ready: str, size: tuple[int, int], part: str = "body", wait: int = 1000
) -> None:
    """A page, or a part of it, as Chromium shows it once ``ready`` is there."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as running:
        browser = running.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        tab = browser.new_page(viewport={"width": size[0], "height": size[1]})
        for _ in range(2):  # the second time everything is loaded and compiled
            tab.goto(url)
            tab.wait_for_selector(ready)
            tab.wait_for_timeout(wait)
        if part == "body":
            tab.screenshot(path=str(out))
        else:
            tab.locator(part).screenshot(path=str(out))
        browser.close()


def main(names: list[str]) -> None:
    """Make those that are named, or all of them."""
    FOLDER.mkdir(exist_ok=True)
    for name in names or PICTURES:
        PICTURES[name](FOLDER / name)


PICTURES: dict[str, Callable[[Path], None]] = {
    "they.svg": draw_word,
    "dates.svg": draw_dates,
    "why.svg": draw_why,
    "patched.svg": draw_patched,
    "roles.svg": draw_roles,
    "look.png": photograph_page,
    "learn.png": photograph_course,
    "studio.png": photograph_studio,
}

if __name__ == "__main__":
    main(sys.argv[1:])
