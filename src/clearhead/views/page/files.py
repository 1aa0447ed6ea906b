"""The scripts and style sheets of pages, out of the folder ``assets``."""

from __future__ import annotations

import functools
from importlib import resources


@functools.cache
def asset(name: str) -> str:
    """The text of one file.

    >>> asset("colours.css").startswith("/* Every colour")
    True
    """
    return (
        resources.files("clearhead.views.page").joinpath("assets", name).read_text(encoding="utf-8")
    )


def style(name: str, *, colours: bool = True) -> str:
    """A style sheet, after the colours and the buttons that it uses."""
    before = ("colours.css", "tools.css") if colours else ()
    return "\n".join(asset(part) for part in (*before, name))
