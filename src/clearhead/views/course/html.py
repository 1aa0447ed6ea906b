"""All chapters as one self-contained page: no network, one script, numbers that can be changed."""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Callable, Sequence
from importlib import resources
from typing import Any

from clearhead.views.course.chapter import Chapter, Exercise
from clearhead.views.course.chapters import CHAPTERS
from clearhead.views.course.inline import inline_html
from clearhead.views.course.real_numbers import real_numbers
from clearhead.views.escape import markup_text, script_json

TITLE = "From one query to a Transformer"
INTRODUCTION = (
    "This course explains attention, the idea behind today's language models, with numbers that "
    "you can change. You need school mathematics: multiply, add, and powers of a number. Sixteen "
    "short chapters take about an hour. Each stands alone, so you may begin anywhere."
)
SHARED = ("parts.js", "data.js", "sampling.js", "picture.js")  # of views/page/assets
SCRIPTS = (
    "mathematics.js", "fields.js", "tables.js", "transformer.js", "figures_attention.js",
    "figures_models.js", "figures_evidence.js", "exercise.js", "course.js",
)  # fmt: skip
POLICY = (
    "default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)


def course_page(
    chapters: Sequence[Chapter] = CHAPTERS, progress: Callable[[int, int], None] | None = None
) -> str:
    """The whole file; ``progress`` is called with (chapters done, all chapters).

    >>> page = course_page()
    >>> page.count('<section class="chapter"'), len(page) < 10_000_000
    (16, True)
    """
    bodies = []
    for number, chapter in enumerate(chapters):
        bodies.append(_chapter(chapter, number, chapters))
        if progress is not None:
            progress(number + 1, len(chapters))
    program = _program()
    digest = base64.b64encode(hashlib.sha256(program.encode()).digest()).decode("ascii")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY.format(digest=digest)}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>clearhead – {TITLE}</title><style>{_style()}</style></head>\n"
        f'<body>\n<div class="clearhead course">{_header()}<div class="columns">'
        f"{_contents(chapters)}<main>{_introduction()}{''.join(bodies)}</main></div>\n"
        f"{_data(chapters)}</div>\n<script>{program}</script>\n</body></html>\n"
    )


def _header() -> str:
    return (
        '<a class="skip" href="#one-query">Skip to the first chapter</a>'
        '<header class="top-bar"><span class="brand"><b>clearhead</b> learn</span>'
        '<span class="progress" role="status"></span><span class="spacer"></span>'
        '<button type="button" class="plain alone" aria-pressed="false">One chapter at a time'
        '</button><button type="button" class="plain theme">Light or dark</button></header>'
    )


def _contents(chapters: Sequence[Chapter]) -> str:
    links = "".join(
        f'<li><a href="#{one.id}" data-chapter="{one.id}">{markup_text(one.title)}</a></li>'
        for one in chapters
    )
    return (
        '<nav aria-label="chapters"><details open><summary>Chapters</summary>'
        f"<ol>{links}</ol></details></nav>"
    )


def _introduction() -> str:
    return (
        f'<div class="intro"><h1>{TITLE}</h1><p>{INTRODUCTION}</p><p class="quiet">Boxes can be '
        "typed into; the arrow keys change a number by 1, with Shift by 0.1. The keys n and p go "
        "to the next chapter and the one before. Nothing is sent anywhere: the page computes "
        "everything itself.</p></div>"
    )


def _chapter(chapter: Chapter, number: int, chapters: Sequence[Chapter]) -> str:
    text = "".join(f"<p>{inline_html(part)}</p>" for part in chapter.text)
    after = "".join(f"<p>{inline_html(part)}</p>" for part in chapter.after)
    needs = '<p class="quiet">It needs a model that is fetched once (93 MB).</p>'
    return (
        f'<section class="chapter" id="{chapter.id}" aria-labelledby="{chapter.id}-title">'
        f'<p class="kicker">Chapter {number + 1}</p>'
        f'<h2 id="{chapter.id}-title">{markup_text(chapter.title)}</h2>'
        f'<p class="question">{inline_html(chapter.question)}</p>{text}{_figure(chapter)}{after}'
        f'<div class="code"><h3>The same in Python</h3><pre tabindex="0"><code>'
        f"{_code(chapter.code)}</code></pre>{needs * chapter.download}</div>"
        f"{_exercise(chapter)}{_next(chapter, number, chapters)}</section>"
    )


def _code(code: str) -> str:
    return "\n".join(markup_text(line) for line in code.splitlines())


def _figure(chapter: Chapter) -> str:
    tools = (
        ("again", "Start again", "Put the first numbers back"),
        ("share", "Link", "Copy a link to the figure as it is now"),
        ("svg", "SVG", "Save the figure as it is now as a picture"),
        ("full", "Full screen", "Show the figure alone, on the full screen"),
    )
    buttons = "".join(
        f'<button type="button" class="plain {name}" title="{title}">{text}</button>'
        for name, text, title in tools
    )
    return (
        f'<figure aria-label="{markup_text(chapter.figure.title)}"><div class="figure-head">'
        f"<figcaption>{inline_html(chapter.figure.title)}</figcaption>"
        f'<span class="tools">{buttons}<span class="said" role="status"></span></span></div>'
        '<div class="figure-body"><p class="quiet">This figure needs a browser that runs scripts.'
        '</p></div><p class="conclusion" aria-live="polite"></p></figure>'
    )


def _exercise(chapter: Chapter) -> str:
    exercise = chapter.exercise
    shown = (
        '<button type="button" class="plain set">See it in the figure</button>'
        if exercise.state
        else ""
    )
    return (
        '<div class="exercise"><h3>Predict first</h3>'
        f"<p>{inline_html(exercise.question)}</p>{_boxes(chapter.id, exercise)}"
        '<p class="verdict" role="status"></p>'
        '<button type="button" class="plain reveal">Show the answer</button>'
        f'<div class="answer"><p><b>{markup_text(answer_text(exercise))}.</b> '
        f"{inline_html(exercise.explanation)}</p>{shown}</div></div>"
    )


def _boxes(id: str, exercise: Exercise) -> str:
    if exercise.options:
        options = "".join(
            f'<button type="button" class="pick" data-choice="{place}" aria-pressed="false">'
            f"{markup_text(option)}</button>"
            for place, option in enumerate(exercise.options)
        )
        return f'<p class="picks" role="group" aria-label="your answer">{options}</p>'
    boxes = "".join(
        f'<label class="field">{markup_text(label)} <input type="text" inputmode="decimal" '
        f'class="box wide" autocomplete="off" id="{id}-answer-{place}"></label> '
        for place, label in enumerate(exercise.labels)
    )
    return f'<form class="try">{boxes}<button class="pick">Check</button></form>'


def answer_text(exercise: Exercise) -> str:
    """The answer as people write it."""
    if exercise.options:
        return exercise.options[int(exercise.answer[0])].rstrip(".")
    numbers = [
        f"{one:.{exercise.decimals}f}" if exercise.decimals else f"{one:,.0f}"
        for one in exercise.answer
    ]
    if len(numbers) == 1:
        return numbers[0]
    named = zip(exercise.labels, numbers, strict=True)
    return ", ".join(f"{label} {number}" for label, number in named)


def _next(chapter: Chapter, number: int, chapters: Sequence[Chapter]) -> str:
    following = chapters[number + 1] if number + 1 < len(chapters) else None
    link = (
        f' <a href="#{following.id}">Next: {markup_text(following.title)}</a>'
        if following is not None
        else ""
    )
    return f'<p class="next">{inline_html(chapter.next)}{link}</p>'


def _data(chapters: Sequence[Chapter]) -> str:
    metas: dict[str, Any] = {
        one.id: {
            "kind": one.figure.kind,
            "data": one.figure.data,
            "numbers": one.figure.numbers,
            "waits": one.figure.waits,
            "exercise": {
                "answer": one.exercise.answer,
                "decimals": one.exercise.decimals,
                "state": one.exercise.state,
            },
        }
        for one in chapters
    }
    names = dict.fromkeys(one.figure.numbers for one in chapters if one.figure.numbers)
    numbers = "\n".join(
        f'<script type="application/json" data-numbers="{name}">'
        f"{script_json(real_numbers(name))}</script>"
        for name in names
    )
    return (
        f'<script type="application/json" data-chapters>{script_json(metas)}</script>\n{numbers}\n'
    )


@functools.cache
def _program() -> str:
    """All scripts in one function, those of other pages first."""
    parts = [_file("clearhead.views.page", name) for name in SHARED]
    parts += [_file("clearhead.views.course", name) for name in SCRIPTS]
    return "(() => {\n" + "\n".join(parts) + "\n})();"


def _style() -> str:
    return "\n".join(
        (
            _file("clearhead.views.page", "colours.css"),
            _file("clearhead.views.course", "course.css"),
        )
    )


@functools.cache
def _file(package: str, name: str) -> str:
    return resources.files(package).joinpath("assets", name).read_text(encoding="utf-8")
