from __future__ import annotations

import base64
import html
import re

from clearhead.views.notebook import NOT_TRUSTED, notebook_html
from clearhead.views.page.html import html_page
from clearhead.views.svg.render import svg
from tests.shared.made_looks import made_look


def test_a_look_is_a_page_in_a_frame_with_a_picture_behind_it() -> None:
    look = made_look(word="they", head="L1H4")
    shown = notebook_html(look)
    page = re.search(r'srcdoc="([^"]*)"', shown)
    assert page is not None and html.unescape(page[1]) == html_page(look)
    assert 'sandbox="allow-scripts"' in shown and NOT_TRUSTED in shown
    image = re.search(r"base64,([^\"]*)", shown[page.end() :])
    assert image is not None
    assert base64.b64decode(image[1]).decode() == svg(look.word("they", "L1H4"))


def test_everything_else_is_an_image_only() -> None:
    shown = notebook_html(made_look().gallery())
    assert shown.startswith("<img ") and "<iframe" not in shown and "<script" not in shown
