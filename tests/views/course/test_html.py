"""The page of the course: its parts, its size, what it may load; its code and its answers."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Any

import pytest

from clearhead.views.course.chapter import Chapter
from clearhead.views.course.chapters import CHAPTERS
from clearhead.views.course.html import answer_text, course_page

HERE = [chapter for chapter in CHAPTERS if not chapter.download]


@pytest.fixture(scope="module")
def page() -> str:
    return course_page()


def test_it_is_one_file_that_loads_nothing(page: str) -> None:
    assert len(page.encode()) < 10_000_000
    program = page.rsplit("<script>", 1)[1].rsplit("</script>", 1)[0]
    digest = base64.b64encode(hashlib.sha256(program.encode()).digest()).decode()
    assert f"default-src 'none'; script-src 'sha256-{digest}'" in page
    assert not re.search(r"""(src|href)=["'](?!#)""", page)
    assert page.count("<script>") == 1


def test_every_chapter_has_all_parts(page: str) -> None:
    sections = page.split('<section class="chapter" ')[1:]
    assert len(sections) == len(CHAPTERS) == 16
    for section in sections:
        for part in ("question", "<figure", "<pre", "exercise", "answer", 'class="next"'):
            assert part in section
    assert len({chapter.id for chapter in CHAPTERS}) == len(CHAPTERS)


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    course_page(CHAPTERS[:2], progress=lambda done, all: told.append((done, all)))
    assert told == [(1, 2), (2, 2)]


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda one: one.id)
def test_the_code_has_three_to_ten_lines(chapter: Chapter) -> None:
    lines = [line for line in chapter.code.splitlines() if line.strip()]
    assert 3 <= len(lines) <= 10
    assert max(map(len, lines)) <= 100


def ran(chapter: Chapter) -> dict[str, Any]:
    program: dict[str, Any] = {}
    exec(compile(chapter.code, chapter.id, "exec"), program)
    return program


@pytest.mark.parametrize("chapter", HERE, ids=lambda one: one.id)
def test_the_answer_is_what_python_says(chapter: Chapter) -> None:
    check_answer(chapter)


@pytest.mark.download
@pytest.mark.parametrize(
    "chapter", [one for one in CHAPTERS if one.download], ids=lambda one: one.id
)
def test_the_answer_is_what_a_real_model_says(chapter: Chapter) -> None:
    check_answer(chapter)


def check_answer(chapter: Chapter) -> None:
    found = eval(chapter.exercise.python, ran(chapter))
    numbers = found if isinstance(found, tuple) else (found,)
    allowed = 5e-3 if chapter.download else 1e-12
    assert numbers == pytest.approx(chapter.exercise.answer, abs=allowed)
    assert all(part in answer_text(chapter.exercise) for part in [*_shown(chapter)])


def _shown(chapter: Chapter) -> list[str]:
    exercise = chapter.exercise
    if exercise.options:
        return [exercise.options[int(exercise.answer[0])].rstrip(".")]
    return [f"{one:,.{exercise.decimals}f}" for one in exercise.answer]
