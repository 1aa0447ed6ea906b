"""Insight as one self-contained HTML file: no network, nothing to install.

A look, and a single head, become an interactive page; everything else the picture that ``svg``
draws, with its notes.
"""

from __future__ import annotations

import functools
from typing import Any

from clearhead.explain.difference import Difference
from clearhead.explain.look import Look
from clearhead.explain.pictures import HeadPicture, shortened
from clearhead.explain.step_table import StepTable
from clearhead.explain.zoom.zoomed_map import ZoomedMap
from clearhead.views.escape import markup_text, script_json
from clearhead.views.page.blocks import Blocks
from clearhead.views.page.data import PageData, page_of_look, page_of_picture
from clearhead.views.page.files import asset, style
from clearhead.views.page.static import header, script

SCRIPTS = (
    "parts.js", "data.js", "sentence.js", "bars.js", "sampling.js", "predictions.js", "lens.js",
    "heatmap.js", "saving.js", "gallery.js", "steps.js", "written.js", "view.js",
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
    if isinstance(insight, HeadPicture) and isinstance(insight.zoom, ZoomedMap):
        from clearhead.views.page.zoom.page import map_fragment

        return map_fragment(insight, insight.zoom)
    if isinstance(insight, HeadPicture):
        return _interactive(page_of_picture(insight), " ".join(m.text for m in insight.rows))
    if isinstance(insight, StepTable):
        from clearhead.views.page.steps import steps_fragment

        return steps_fragment(insight)
    if isinstance(insight, Difference):
        from clearhead.views.page.difference import difference_fragment

        return difference_fragment(insight)
    return _static(insight)


def _interactive(data: PageData, text: str) -> str:
    return (
        f"<style>{style('view.css')}</style>\n"
        '<div class="clearhead" data-view>\n'
        f'<p class="plain-text" dir="auto">{markup_text(text)}</p>\n'
        f'<script type="application/json" data-meta>{script_json(data.meta)}</script>\n'
        f"{block_elements(data.blocks)}\n</div>\n<script>{program(SCRIPTS)}</script>"
    )


def block_elements(blocks: Blocks) -> str:
    """The numbers of a page as elements that ``data.js`` reads."""
    return "\n".join(
        f'<script type="text/plain" data-block="{markup_text(name)}" '
        f'data-packed="{block.packed}">{block.text}</script>'
        for name, block in blocks.by_name.items()
    )


def _static(insight: Any) -> str:
    from clearhead.views.svg.render import svg

    model = getattr(insight, "model", "")
    return (
        f'<style>{style("view.css")}</style>\n<div class="clearhead" data-static>'
        f'<main class="static">{header("", model if isinstance(model, str) else "")}'
        f'<h1 class="unseen">{markup_text(page_title(insight))}</h1>'
        f'<div class="card picture">{svg(insight)}</div></main></div>{script()}'
    )


def page_title(insight: Any) -> str:
    """The title of an insight's page."""
    if isinstance(insight, Difference):
        return f"clearhead – what changed: {shortened(insight.before, 40)}"
    named = (getattr(insight, name, "") for name in ("text", "title", "head"))
    text = next((name for name in named if isinstance(name, str) and name), "")  # not a method
    short = text if len(text) <= 60 else f"{text[:59]}…"
    return f"clearhead – {short}" if short else "clearhead"


@functools.cache
def program(scripts: tuple[str, ...]) -> str:
    """Scripts in one function, so that nothing of theirs meets the names of the page."""
    return "(() => {\n" + "\n".join(asset(name) for name in scripts) + "\n})();"
