"""The page of the studio: its scripts are those of ``views/page/`` and a few of its own."""

from __future__ import annotations

import functools
from importlib import resources

from clearhead.views.page.files import asset, style
from clearhead.views.page.html import SCRIPTS

OWN = (
    "connection.js", "address.js", "models.js", "composer.js", "writing.js", "why.js",
    "map.js", "compare.js", "taking.js", "studio.js",
)  # fmt: skip

ZOOM = (
    "zoom/tiles.js", "zoom/geometry.js", "zoom/edges.js", "zoom/canvas.js", "zoom/input.js",
    "zoom/panel.js", "zoom/gallery.js",
)  # fmt: skip

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>clearhead studio</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="studio.css">
</head><body>
<div class="clearhead studio" id="studio"><noscript>This page needs JavaScript.</noscript></div>
<script src="studio.js"></script>
</body></html>
"""


@functools.cache
def script() -> str:
    """All scripts in one function, so that nothing of theirs meets the names of the page."""
    parts = [*(asset(name) for name in (*SCRIPTS, *ZOOM)), *(_own(name) for name in OWN)]
    return "(() => {\n" + "\n".join(parts) + "\n})();\n"


@functools.cache
def style_sheet() -> str:
    """All style sheets as one."""
    return f"body{{margin:0}}\n{style('view.css')}\n{asset('zoom/zoom.css')}\n{_own('studio.css')}"


def _own(name: str) -> str:
    folder = resources.files("clearhead.studio").joinpath("assets", name)
    return folder.read_text(encoding="utf-8")
