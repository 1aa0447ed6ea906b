"""Insight in a notebook: the text/html of ``_repr_mimebundle_``.

A look becomes the interactive page inside a frame of its own (``srcdoc``): no id, style or script
of it can meet those of the notebook or of another output, nothing is fetched, and it runs alike in
classic notebooks, JupyterLab, VS Code and Colab. Everything else is a still picture.

A notebook that its reader has not trusted loses frames and styles, and drawings written out in
HTML are reduced to their letters; images stay. So pictures are images, and behind every frame
stands one that only shows where the frame is missing.
"""

from __future__ import annotations

import base64
import html

from clearhead.explain.look import Look
from clearhead.explain.pictures import HeadPicture
from clearhead.views.escape import markup_text
from clearhead.views.formats import one_picture
from clearhead.views.page.html import html_page, page_title
from clearhead.views.svg.render import svg

FRAME, STILL = "clearhead-frame", "clearhead-still"
# The frame takes its notebook's light or dark, not the system's: JupyterLab, VS Code, Colab.
LIGHT = ('[data-jp-theme-light="true"]', ".vscode-light", 'html[theme="light"]')
DARK = ('[data-jp-theme-light="false"]', ".vscode-dark", 'html[theme="dark"]')
NOT_TRUSTED = (
    "A still picture, as this notebook is not trusted: run the cell again, or trust the notebook, "
    "to have the interactive page."
)


def notebook_html(insight: object) -> str:
    """The insight as an output cell's HTML."""
    if not isinstance(insight, Look | HeadPicture):
        return _image(insight)
    page = html.escape(html_page(insight), quote=True)
    return (
        f"<style>{_style()}</style>"
        f'<iframe class="{FRAME}" srcdoc="{page}" sandbox="allow-scripts" title="clearhead">'
        f'</iframe><div class="{STILL}">{_image(insight)}<p>{NOT_TRUSTED}</p></div>'
    )


def _image(insight: object) -> str:
    data = base64.b64encode(svg(one_picture(insight)).encode()).decode("ascii")
    title = markup_text(page_title(insight))
    return (
        f'<img src="data:image/svg+xml;base64,{data}" alt="{title}" '
        'style="max-width:100%;background-color:#fff">'
    )


def _style() -> str:
    frame = f"iframe.{FRAME}"
    schemes = (
        ",".join(f"{theme} {frame}" for theme in themes) + f"{{color-scheme:{scheme}}}"
        for scheme, themes in (("light", LIGHT), ("dark", DARK))
    )
    return (
        f"{frame}{{width:100%;height:720px;border:0;resize:vertical;overflow:auto}}"
        f"{frame}+.{STILL}{{display:none}}{''.join(schemes)}"
    )
