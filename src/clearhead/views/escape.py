"""The one place where text from outside becomes part of HTML, a script's data or SVG.

Tokens can hold anything: markup, quotes, the end of a script, control characters, halves of
surrogate pairs. Nothing else in ``views`` may put a text into a page without coming through here.
"""

from __future__ import annotations

import html
import json
import re

# XML 1.0 knows no way to write these, not even escaped; HTML parsers replace or drop some of them.
_UNWRITABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_CONTROL_PICTURES = 0x2400  # ␀ ␁ … ␟, the visible signs of the first 32 characters
_DELETE_PICTURE = "␡"
# Inside <script> the parser looks for "</script" and "<!--", and XHTML for "&" and "]]>".
_SCRIPT_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def markup_text(text: str) -> str:
    """Text for the inside of an element or a quoted attribute, in HTML and in SVG alike."""
    return html.escape(visible_text(text), quote=True)


def visible_text(text: str) -> str:
    """Control characters as their pictures, what cannot be written at all as �."""
    return _UNWRITABLE.sub(_picture, text)


def script_json(data: object) -> str:
    """JSON that may stand inside a ``<script>`` element, whatever texts it holds.

    All but ASCII is escaped as well, so U+2028 and lone surrogates cannot do harm either.
    """
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character, escaped in _SCRIPT_ESCAPES.items():
        text = text.replace(character, escaped)
    return text


def _picture(found: re.Match[str]) -> str:
    code = ord(found.group())
    if code < 0x20:
        return chr(_CONTROL_PICTURES + code)
    return _DELETE_PICTURE if code == 0x7F else "�"
