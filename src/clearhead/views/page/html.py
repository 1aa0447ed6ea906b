"""Insight as one self-contained HTML file: no network, nothing to install.

A look, and a single head, become an interactive page; everything else the picture that ``svg``
draws, with its notes.
"""

from __future__ import annotations

import functools
from importlib import resources
from typing import Any

from clearhead.explain.look import Look
from clearhead.explain.pictures import HeadPicture
from clearhead.views.escape import markup_text, script_json
from clearhead.views.page.data import PageData, page_of_look, page_of_picture

SCRIPTS = (
    "parts.js", "data.js", "sentence.js", "bars.js", "sampling.js", "predictions.js", "lens.js",
    "heatmap.js", "gallery.js", "steps.js", "written.js", "view.js",
)  # fmt: skip


def html_page(insight: Any) -> str:
    """The whole file."""
    title = markup_text(page_title(insight))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{title}</title><style>body{{margin:0}}.clearhead{{min-height:100vh}}</style>"
        f"</head><body>\n{html_fragment(insight)}\n</body></html>\n"
    )


def html_fragment(insight: Any) -> str:
    """The same as one element for another page; a page can hold several."""
    if isinstance(insight, Look):
        return _interactive(page_of_look(insight), insight.text)
    if isinstance(insight, HeadPicture):
        return _interactive(page_of_picture(insight), " ".join(m.text for m in insight.rows))
    return _static(insight)


def _interactive(data: PageData, text: str) -> str:
    blocks = "\n".join(
        f'<script type="text/plain" data-block="{markup_text(name)}" '
        f'data-packed="{block.packed}">{block.text}</script>'
        for name, block in data.blocks.by_name.items()
    )
    return (
        f"<style>{style('view.css')}</style>\n"
        '<div class="clearhead" data-view>\n'
        f'<p class="plain-text" dir="auto">{markup_text(text)}</p>\n'
        f'<script type="application/json" data-meta>{script_json(data.meta)}</script>\n'
        f"{blocks}\n</div>\n<script>{_program()}</script>"
    )


def _static(insight: Any) -> str:
    from clearhead.views.svg.render import svg

    notes = "".join(f"<li>{markup_text(note)}</li>" for note in getattr(insight, "notes", ()))
    return (
        f'<style>{style("view.css")}</style>\n<div class="clearhead"><div class="static">'
        f'<div class="card">{svg(insight)}</div><footer><ul>{notes}</ul></footer></div></div>'
    )


def page_title(insight: Any) -> str:
    """The title of an insight's page."""
    named = (getattr(insight, name, "") for name in ("text", "title", "head"))
    text = next((name for name in named if isinstance(name, str) and name), "")  # not a method
    short = text if len(text) <= 60 else f"{text[:59]}…"
    return f"clearhead – {short}" if short else "clearhead"


@functools.cache
def _program() -> str:
    """All scripts in one function, so that nothing of theirs meets the names of the page."""
    return "(() => {\n" + "\n".join(_file(name) for name in SCRIPTS) + "\n})();"


def style(name: str) -> str:
    """A style sheet of the assets, after the colours that it uses."""
    return f"{_file('colours.css')}\n{_file(name)}"


@functools.cache
def _file(name: str) -> str:
    return (
        resources.files("clearhead.views.page").joinpath("assets", name).read_text(encoding="utf-8")
    )
