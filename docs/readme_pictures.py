"""The pictures in the README, made by clearhead itself: ``python docs/readme_pictures.py``.

``they.svg`` shows what one word attends to in one head. ``dates.svg`` shows cross-attention: what
the built-in model read while it wrote a date. ``why.svg`` shows which words and heads made a
prediction, ``patched.svg`` which of them carry what two texts differ in. ``roles.svg`` shows the
roles of minilm's heads.
``look.png`` is the interactive page as Chromium shows it (with ``playwright``; left as it is where
that is missing).
"""

from __future__ import annotations

import shutil
import tempfile
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
    """The interactive page as Chromium shows it."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as running:
        page = Path(folder) / "page.html"
        ch.look(ch.load("smollm2"), SENTENCE).save(page)
        browser = running.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        tab = browser.new_page(viewport={"width": 1280, "height": 1330})
        tab.goto(page.as_uri())
        tab.wait_for_selector("[data-ready]")
        tab.wait_for_timeout(1000)
        tab.screenshot(path=str(out))
        browser.close()


def main() -> None:
    """Make all of them."""
    FOLDER.mkdir(exist_ok=True)
    draw_word(FOLDER / "they.svg")
    draw_dates(FOLDER / "dates.svg")
    draw_why(FOLDER / "why.svg")
    draw_patched(FOLDER / "patched.svg")
    draw_roles(FOLDER / "roles.svg")
    try:
        photograph_page(FOLDER / "look.png")
    except ImportError:
        print("look.png stays as it is: playwright is not installed")


if __name__ == "__main__":
    main()
