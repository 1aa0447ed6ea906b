"""The chapters as Markdown: pages of the documentation, whose code is executed by the tests."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from clearhead.views.course.chapter import Chapter
from clearhead.views.course.chapters import CHAPTERS
from clearhead.views.course.html import INTRODUCTION, TITLE, answer_text

WIDTH = 120
MADE = (
    "<!-- Made by `clearhead learn --markdown docs/learn`; the chapters are in views/course/. -->"
)


def course_markdown(chapters: Sequence[Chapter] = CHAPTERS) -> dict[str, str]:
    """Every page by its file name: ``index.md`` and one for each chapter.

    >>> sorted(course_markdown())[:2]
    ['01-one-query.md', '02-batch.md']
    """
    pages = {"index.md": _index(chapters)}
    for number, chapter in enumerate(chapters):
        pages[file_name(chapter, number)] = _page(chapter, number, chapters)
    return pages


def file_name(chapter: Chapter, number: int) -> str:
    """The file of a chapter: its number and its link."""
    return f"{number + 1:02}-{chapter.id}.md"


def _index(chapters: Sequence[Chapter]) -> str:
    links = [
        f"{number + 1}. [{chapter.title}]({file_name(chapter, number)}): {chapter.question}"
        for number, chapter in enumerate(chapters)
    ]
    live = (
        "This is the text of the course. Its figures are live in one page that needs no network: "
        "`clearhead learn --open` writes and opens it."
    )
    return (
        "\n\n".join([f"# {TITLE}", MADE, _filled(INTRODUCTION), _filled(live), "\n".join(links)])
        + "\n"
    )


def _page(chapter: Chapter, number: int, chapters: Sequence[Chapter]) -> str:
    exercise = chapter.exercise
    options = f" ({' / '.join(exercise.options)})" if exercise.options else ""
    live = (
        f"**Figure: {chapter.figure.title}.** It is live in the page that `clearhead learn --open` "
        f"writes, at `#{chapter.id}`."
    )
    download = " download" if chapter.download else ""
    parts = [
        f"# {number + 1}. {chapter.title}",
        MADE,
        f"*{_plain(chapter.question)}*",
        *chapter.text,
        live,
        *chapter.after,
        "## The same in Python",
        f"```python{download}\n{chapter.code}\n```",
        "## Predict first",
        f"{exercise.question}{options}",
        f"<details><summary>Answer</summary>\n\n**{answer_text(exercise)}.** "
        f"{exercise.explanation}\n\n</details>",
        _next(chapter, number, chapters),
    ]
    return "\n\n".join(_filled(part) for part in parts) + "\n"


def _next(chapter: Chapter, number: int, chapters: Sequence[Chapter]) -> str:
    if number + 1 == len(chapters):
        return f"{chapter.next} [All chapters](index.md)"
    following = chapters[number + 1]
    return f"{chapter.next} [Next: {following.title}]({file_name(following, number + 1)})"


def _plain(text: str) -> str:
    """A text without its emphasis, for a place that is emphasised as a whole."""
    return re.sub(r"\*+", "", text)


def _filled(text: str) -> str:
    """A paragraph in lines of limited width; code and markup stay as they are."""
    if text.startswith(("```", "#", "<")):
        return text
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)
