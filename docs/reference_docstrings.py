"""Docstrings as mkdocstrings wants them: an extension of griffe, which reads them (``mkdocs.yml``).

Ours are written to be read in the source: arguments that belong together share a line, doctests
stand bare, names have Sphinx's roles. In Markdown each of these would be lost.
"""

from __future__ import annotations

import re
import textwrap
from typing import Any

import griffe

ROLE = re.compile(r":(?:func|class|mod|meth|attr|data):`[~.]?([^`]+)`")
JOINT = re.compile(r"^(    )(\w+)((?:, \w+)+): ", re.MULTILINE)  # "    word, head: what …"
DOCTEST = re.compile(r"(?m)^([ ]*)>>> .*(?:\n[ ]*\S.*)*")


def as_markdown(text: str) -> str:
    """One docstring, rewritten."""
    text = ROLE.sub(r"``\1``", text)
    text = DOCTEST.sub(_fenced, text)
    return "\n".join(_separate(line) for line in text.split("\n"))


def _fenced(found: re.Match[str]) -> str:
    """A run of doctest lines as a block of code; one in an ``Examples:`` section as it is."""
    indent = found[1]
    if indent:
        return found[0]
    return f"```pycon\n{textwrap.dedent(found[0])}\n```"


def _separate(line: str) -> str:
    """``word, head: text`` as two arguments, the second of which points at the first."""
    found = JOINT.match(line)
    if not found:
        return line
    first, others = found[2], found[3].split(", ")[1:]
    rows = [f"    {other}: see ``{first}``." for other in others]
    return "\n".join([*rows, f"    {first}: {line[found.end() :]}"])


class HouseDocstrings(griffe.Extension):  # type: ignore[misc]  # griffe is optional
    """Rewrites every docstring as it is loaded."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called by griffe for each module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)
