"""A real Chromium for tests of pages: found or skipped, offline, one for each test process."""

from __future__ import annotations

import functools
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
)  # fmt: skip
PATIENCE = 120_000  # milliseconds: no test is about how busy the machine is
NONE = "no Chromium here: tests in a browser are skipped (tests/shared/get_chromium.sh gets one)"


@functools.cache
def _browser() -> Any:
    """Started once; it ends with this process."""
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        return None
    found = os.environ.get("CLEARHEAD_CHROMIUM") or next(
        filter(None, map(shutil.which, NAMES)), None
    )
    try:
        running = sync_playwright().start()
        return running.chromium.launch(executable_path=found, args=list(FLAGS), timeout=PATIENCE)
    except Error:
        return None


@contextmanager
def page_at(
    folder: Path, html: str, *, width: int = 1280, height: int = 800, dark: bool = False
) -> Iterator[Any]:
    """The page in a fresh, offline browser context; errors and requests to anywhere fail."""
    browser = _browser()
    if browser is None:
        pytest.skip(NONE)
    path = folder / "page.html"
    path.write_text(html, encoding="utf-8")
    scheme = "dark" if dark else "light"
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, offline=True
    )
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    errors: list[str] = []
    asked: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)

    def ran(dialog: Any) -> None:
        errors.append(f"ran: {dialog.message}")
        dialog.dismiss()

    page.on("dialog", ran)
    page.on("request", lambda request: asked.append(request.url))
    try:
        page.goto(path.as_uri())
        yield page
        assert errors == []
        own = (path.as_uri(), "data:", "about:", "blob:")
        assert [url for url in asked if not url.startswith(own)] == []
    finally:
        context.close()


def soon(locator: Any, text: str | re.Pattern[str]) -> None:
    """The element holds this text, or will."""
    from playwright.sync_api import expect

    expect(locator).to_contain_text(text, timeout=PATIENCE, use_inner_text=True)
