"""The pictures in the README, made by clearhead itself: ``python docs/readme_pictures.py``.

``they.svg`` is where one word looks in one head; ``look.png`` is the interactive page as Chromium
shows it (with ``playwright``; left as it is where that is missing).
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import clearhead as ch
from clearhead.explain.look import Look
from clearhead.explain.reading import make_look
from clearhead.views.html import html_page
from clearhead.views.svg import svg

FOLDER = Path(__file__).resolve().parent / "images"
SENTENCE = "The kids were scared of the lions, so they left right away."


def word_picture(look: Look) -> str:
    """Where the chosen word looks, in the chosen head."""
    return svg(look.word(look.chosen_word, look.chosen_head))


def photograph(page: str, out: Path) -> None:
    """A page as Chromium shows it."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as running:
        path = Path(folder) / "page.html"
        path.write_text(page, encoding="utf-8")
        browser = running.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        tab = browser.new_page(viewport={"width": 1280, "height": 1150})
        tab.goto(path.as_uri())
        tab.wait_for_selector("[data-ready]")
        tab.wait_for_timeout(1000)
        tab.screenshot(path=str(out))
        browser.close()


def main() -> None:
    """Make both."""
    FOLDER.mkdir(exist_ok=True)
    look = make_look(ch.load("smollm2"), SENTENCE)
    (FOLDER / "they.svg").write_text(word_picture(look), encoding="utf-8")
    try:
        photograph(html_page(look), FOLDER / "look.png")
    except ImportError:
        print("look.png stays as it is: playwright is not installed")


if __name__ == "__main__":
    main()
