"""Insight in a notebook: what text/html of ``_repr_mimebundle_`` holds.

A look becomes the interactive page inside a frame of its own (``srcdoc``): no id, style or script
of it can meet those of the notebook or of another output, nothing is fetched, and it runs alike in
classic notebooks, JupyterLab, VS Code and Colab. Everything else is a plain picture.
"""

from __future__ import annotations

import html

from clearhead.explain.look import Look
from clearhead.explain.pictures import HeadPicture
from clearhead.views.html import html_page
from clearhead.views.svg import svg

HEIGHT = 720  # pixels; the frame can be drawn larger by its corner


def notebook_html(insight: object) -> str:
    """The insight as an output cell's HTML."""
    if isinstance(insight, Look | HeadPicture):
        page = html.escape(html_page(insight), quote=True)
        return (
            f'<iframe srcdoc="{page}" sandbox="allow-scripts" title="clearhead" '
            f'style="width:100%;height:{HEIGHT}px;border:0;resize:vertical;overflow:auto">'
            "</iframe>"
        )
    return f'<div style="overflow-x:auto;background:#fff">{svg(insight)}</div>'
