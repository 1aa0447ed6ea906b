"""The one place where text from outside becomes part of HTML, a script's data, SVG or JSON.

Tokens can hold anything: markup, quotes, the end of a script, control characters, halves of
surrogate pairs. Nothing else in ``views`` may put a text into a page without coming through here.
"""

from __future__ import annotations

import html
import json
import re

from clearhead.visible import visible_text

# Inside <script> the parser looks for "</script" and "<!--", and XHTML for "&" and "]]>".
# Marks, overrides and isolates would turn the text around them, in a page as in a terminal.
_TURNING = re.compile(r"(?<!\\)((?:\\\\)*)\\u(?:061c|200[ef]|202[a-e]|206[6-9])")
_UNSEEN = re.compile("[\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
_SCRIPT_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def markup_text(text: str) -> str:
    """Text for the inside of an element or a quoted attribute, in HTML and in SVG alike."""
    return html.escape(visible_text(text), quote=True)


def script_json(data: object) -> str:
    """JSON that may stand inside a ``<script>`` element, whatever texts it holds.

    All but ASCII is escaped as well, so U+2028 and lone surrogates cannot do harm either. What
    would turn the text around it becomes �.
    """
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    text = _TURNING.sub(r"\1\\ufffd", text)
    for character, escaped in _SCRIPT_ESCAPES.items():
        text = text.replace(character, escaped)
    return text


def plain_json(text: str) -> str:
    """JSON that shows every character: those that cannot be seen are written as escapes.

    The data stay the same. JSON itself wants that only of the first 32 characters.
    """
    return _UNSEEN.sub(lambda found: f"\\u{ord(found.group()):04x}", text)
