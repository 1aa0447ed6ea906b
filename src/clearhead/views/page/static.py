"""What pages that are drawn once have in common: the header with the model, buttons, their script.

They can be read without the script; it saves pictures and keeps the choice in the address.
"""

from __future__ import annotations

import functools

from clearhead.views.escape import markup_text
from clearhead.views.page.files import asset

SCRIPTS = ("parts.js", "picture.js", "static.js")
TOOLS = (
    '<span class="tools" hidden><button type="button" data-save="png" title="Save what is shown '
    'as a picture for slides">PNG</button><button type="button" data-save="svg" '
    'title="Save what is shown as a picture for papers">SVG</button></span>'
)


def header(what: str, *models: str) -> str:
    """The first line of a page: what it shows, and of which models.

    >>> header("what changed", "a", "b").startswith('<header><span class="brand"><b>clearhead')
    True
    """
    known = list(dict.fromkeys(model for model in models if model))
    named = " · ".join(markup_text(part) for part in (what, " and ".join(known)) if part)
    return f'<header><span class="brand"><b>clearhead</b> {named}</span>{TOOLS}</header>'


@functools.cache
def script() -> str:
    """The script element of such a page, to stand behind it."""
    program = "\n".join(asset(name) for name in SCRIPTS)
    return f"<script>(() => {{\n{program}\n}})();</script>"
