"""The course as Markdown: the pages in docs/learn are what the chapters say."""

from __future__ import annotations

from pathlib import Path

from clearhead.views.course.chapters import CHAPTERS
from clearhead.views.course.markdown import course_markdown

FOLDER = Path(__file__).resolve().parents[3] / "docs" / "learn"


def test_the_pages_in_the_docs_are_those_of_the_chapters() -> None:
    kept = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}
    assert kept == course_markdown(), "run: clearhead learn --markdown docs/learn"


def test_every_page_has_all_parts_and_links_that_exist() -> None:
    pages = course_markdown()
    assert len(pages) == len(CHAPTERS) + 1
    for chapter, (name, page) in zip(CHAPTERS, list(pages.items())[1:], strict=True):
        assert chapter.code in page and chapter.title in page
        assert "## Predict first" in page and "<details><summary>Answer" in page
        links = [part.split(")")[0] for part in page.split("](")[1:]]
        assert links and all(link in pages for link in links), name
