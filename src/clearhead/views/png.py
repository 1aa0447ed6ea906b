"""Insight as PNG, drawn from the same SVG by ``resvg`` (Rust, in the wheel ``resvg-py``).

It needs no system library. Words are set in Open Sans (package ``ttf-opensans``), so a picture
looks alike on every machine, bare containers without any font included. What Open Sans lacks, such
as Chinese, comes from the system's fonts; only their upright, regular faces are offered, as resvg
takes the first that knows a sign, and that would often be a bold italic one.
"""

from __future__ import annotations

import functools
import importlib.resources
import re
from pathlib import Path

import resvg_py

from clearhead.errors import InputError
from clearhead.views.svg.render import svg

LARGEST = 16  # times the SVG's size
STYLE = "svg { font-family: 'Open Sans' }"
FONT_FOLDERS = (
    "/usr/share/fonts", "/usr/local/share/fonts", "~/.fonts", "~/.local/share/fonts",
    "/System/Library/Fonts", "/Library/Fonts", "~/Library/Fonts", "C:/Windows/Fonts",
)  # fmt: skip
_OTHER_FACES = re.compile("bold|italic|oblique|light|thin|black|condensed|narrow|mono", re.I)


def png(insight: object, scale: int | float = 2) -> bytes:
    """The picture as a file's bytes; ``scale`` 2 is sharp on slides."""
    if isinstance(scale, bool) or not 0 < scale <= LARGEST:
        raise InputError(f"scale must be above 0 and at most {LARGEST}; got {scale!r}.")
    drawn = resvg_py.svg_to_bytes(
        svg_string=svg(insight),
        zoom=scale,
        style_sheet=STYLE,
        skip_system_fonts=True,
        font_files=[*_own_fonts(), *_system_fonts()],
    )
    return bytes(drawn)


def _own_fonts() -> list[str]:
    folder = importlib.resources.files("ttf_opensans").joinpath("ttf")
    return [
        str(folder.joinpath(name)) for name in ("OpenSans-Regular.ttf", "OpenSans-SemiBold.ttf")
    ]


@functools.cache
def _system_fonts() -> list[str]:
    found = (
        path
        for folder in FONT_FOLDERS
        for path in sorted(Path(folder).expanduser().rglob("*.[to]t[fc]"))
    )
    return [str(path) for path in found if not _OTHER_FACES.search(path.stem)]
