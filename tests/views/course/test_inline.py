"""Emphasis and code inside a text."""

from __future__ import annotations

import pytest

from clearhead.views.course.chapters import CHAPTERS
from clearhead.views.course.inline import inline_html


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a *b* c", "a <em>b</em> c"),
        ("**a b** `c*d`", "<strong>a b</strong> <code>c*d</code>"),
        ("3 * 4 * 5", "3 * 4 * 5"),
        ("W_q and Z_f, not `W_q`", "W<sub>q</sub> and Z<sub>f</sub>, not <code>W_q</code>"),
        ("e^1.5/(e^score)", "e<sup>1.5</sup>/(e<sup>score</sup>)"),
        ("<script>*x*</script>", "&lt;script&gt;<em>x</em>&lt;/script&gt;"),
    ],
)
def test_marks_become_elements_and_nothing_else_does(text: str, shown: str) -> None:
    assert inline_html(text) == shown


def test_no_mark_is_left_in_any_chapter() -> None:
    for chapter in CHAPTERS:
        exercise = chapter.exercise
        texts = (*chapter.text, *chapter.after, chapter.question, chapter.next)
        for text in (*texts, exercise.question, exercise.explanation):
            assert "*" not in inline_html(text) and "`" not in inline_html(text), text
