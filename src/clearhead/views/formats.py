"""File formats of an insight, by the ending of the file: HTML, SVG, PNG, CSV, JSON, plain text.

A whole look has too much for one picture. ``one_picture`` says which part of it SVG and PNG draw;
CSV and JSON hold the weights of the chosen head, and the predictions.
"""

from __future__ import annotations

from collections.abc import Callable

from clearhead.explain.look import Look
from clearhead.views.terminal.render import plain_text


def html_bytes(insight: object) -> bytes:
    """The page."""
    from clearhead.views.page.html import html_page

    return html_page(insight).encode()


def svg_bytes(insight: object) -> bytes:
    """The picture as vectors."""
    from clearhead.views.svg.render import svg

    return svg(one_picture(insight)).encode()


def png_bytes(insight: object) -> bytes:
    """The same picture as pixels."""
    from clearhead.views.png import png

    return png(one_picture(insight))


def csv_bytes(insight: object) -> bytes:
    """The numbers, a line each."""
    from clearhead.views.tables import csv_text

    return csv_text(insight).encode()


def json_bytes(insight: object) -> bytes:
    """The numbers with the words that they belong to."""
    from clearhead.views.tables import json_text

    return json_text(insight).encode()


def text_bytes(insight: object) -> bytes:
    """The picture of the terminal, without colour."""
    return (plain_text(insight) + "\n").encode()


FORMATS: dict[str, Callable[[object], bytes]] = {
    "html": html_bytes, "svg": svg_bytes, "png": png_bytes, "csv": csv_bytes, "json": json_bytes,
    "txt": text_bytes,
}  # fmt: skip


def one_picture(insight: object) -> object:
    """The part of a whole look that is drawn: its alignment, or where the chosen word looks."""
    if not isinstance(insight, Look):
        return insight
    if any(layer.kind == "cross" for layer in insight.layers):
        return insight.alignment()
    return insight.word(insight.chosen_word, insight.chosen_head)
