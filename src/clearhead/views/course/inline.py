"""Emphasis and code inside a text of the course, as HTML."""

from __future__ import annotations

import re

from clearhead.views.escape import markup_text

MARKS = (("`", "code"), ("**", "strong"), ("*", "em"))
SIGNS = ((r"\b([WZ])_(\w)\b", r"\1<sub>\2</sub>"), (r"\be\^([\d.]+|\w+)", r"e<sup>\1</sup>"))


def inline_html(text: str) -> str:
    """The text as HTML: ``*emphasis*``, ``**strong**``, code in backticks; W_q and e^2 as signs.

    >>> inline_html("*q* · `k` < **3**")
    '<em>q</em> · <code>k</code> &lt; <strong>3</strong>'
    """
    pieces = markup_text(text).split("`")
    pieces[::2] = [_with_signs(piece) for piece in pieces[::2]]  # the others are code
    shown = "`".join(pieces)
    for mark, tag in MARKS:
        sign = re.escape(mark)
        shown = re.sub(rf"{sign}(?=\S)(.+?)(?<=\S){sign}", rf"<{tag}>\1</{tag}>", shown)
    return shown


def _with_signs(text: str) -> str:
    for sign, shown in SIGNS:
        text = re.sub(sign, shown, text)
    return text
