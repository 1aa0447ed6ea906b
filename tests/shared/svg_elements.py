"""Elements of an SVG picture, for tests of what is drawn."""

from __future__ import annotations

from xml.etree import ElementTree

SPACE = "{http://www.w3.org/2000/svg}"


def texts(picture: str) -> list[str]:
    """Every text of the picture, in the order in which it was drawn."""
    return ["".join(element.itertext()) for element in elements(picture, "text")]


def elements(picture: str, kind: str) -> list[ElementTree.Element]:
    """Every element of a kind: "rect", "path", "image"."""
    return list(ElementTree.fromstring(picture).iter(SPACE + kind))
