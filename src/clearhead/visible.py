"""Text from outside, made safe to show: characters that command a terminal become visible signs.

Token texts, tensor names, labels, file names and what a model writes can hold anything. An escape
sequence in them would move the cursor, hide lines, or answer in the user's name; a bidirectional
override would show one text and mean another. Each such character becomes one other character, so
widths and places stay as they are:

==================================================  ====================================
C0 controls, ESC among them                         their pictures: ␀ … ␛ … ␟
DEL                                                 ␡
C1 controls, halves of surrogate pairs              �
bidirectional marks, overrides and isolates         �
characters without width, line separators, tags     �
joiners (U+200C, U+200D)                            stay where a script or an emoji needs them
==================================================  ====================================
"""

from __future__ import annotations

import re
import unicodedata

_HIDDEN = (
    "\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ufffe\uffff\ud800-\udfff\U000e0000-\U000e007f"
)
_JOINERS = "\u200c\u200d"
_ANY = re.compile(f"[{_HIDDEN}{_JOINERS}]")
_CONTROL_PICTURES = 0x2400  # ␀ ␁ … ␟, the visible signs of the first 32 characters
_DELETE_PICTURE = "␡"
_UNKNOWN = "�"


def visible_text(text: str) -> str:
    """A text without line breaks: every character that could command a terminal as a sign."""
    return _visible(text, "", "") if _ANY.search(text) else text


def visible_lines(text: str, before: str = "") -> str:
    """The same, with line breaks and tabs kept; ``before`` is the character before the text."""
    return _visible(text, before, "\n\t") if _ANY.search(text) else text


class VisibleStream:
    """A text that comes in pieces, piece by piece: a sequence cut in two is still none."""

    def __init__(self) -> None:
        self._last = ""

    def __call__(self, piece: str) -> str:
        """The piece as it may be shown."""
        shown = visible_lines(piece, self._last)
        self._last = shown[-1:] or self._last
        return shown


def _visible(text: str, before: str, kept: str) -> str:
    def sign(found: re.Match[str]) -> str:
        character = found.group()
        if character in kept:
            return character
        if character in _JOINERS:
            previous = text[found.start() - 1] if found.start() else before
            return character if _joins(previous) else _UNKNOWN
        code = ord(character)
        if code < 0x20:
            return chr(_CONTROL_PICTURES + code)
        return _DELETE_PICTURE if code == 0x7F else _UNKNOWN

    return _ANY.sub(sign, text)


def _joins(character: str) -> bool:
    """True if a joiner after this character has a meaning: in Arabic, Indic scripts and emoji."""
    return not character.isascii() and unicodedata.category(character)[0] in "LMS"
