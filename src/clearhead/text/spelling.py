"""How vocabularies spell bytes and spaces, and the same as readable text."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

META_SPACE = "▁"
_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


@cache
def byte_alphabet() -> dict[str, int]:
    """GPT-2's alphabet: a visible character for each of the 256 bytes.

    Bytes that Latin-1 prints stand for themselves; the others, in order, take U+0100 and up, which
    makes a space ``Ġ`` and a line break ``Ċ``.
    """
    printed = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printed]
    letters = {chr(byte): byte for byte in printed}
    return letters | {chr(0x100 + index): byte for index, byte in enumerate(others)}


def readable_bytes(piece: str) -> str:
    """A byte-level piece as text: ``Ġkids`` is `` kids``; half a character is ``<0xE4>``."""
    alphabet = byte_alphabet()
    if not all(letter in alphabet for letter in piece):
        return piece  # an added token is spelled as it is
    raw = bytes(alphabet[letter] for letter in piece)
    text = raw.decode("utf-8", errors="surrogateescape")  # marks a lone byte as U+DC00 + byte
    return "".join(f"<0x{ord(c) - 0xDC00:02X}>" if 0xDC80 <= ord(c) <= 0xDCFF else c for c in text)


def readable_meta(piece: str) -> str:
    """A SentencePiece piece as text: ``▁kids`` is `` kids``, ``<0x0A>`` is a line break."""
    byte = _BYTE_PIECE.fullmatch(piece)
    if byte and int(byte[1], 16) < 0x80:
        return chr(int(byte[1], 16))
    return piece.replace(META_SPACE, " ")


def readable(decoder: dict[str, Any] | None) -> Callable[[str], str]:
    """The function that makes a vocabulary's pieces readable, chosen by its decoder."""
    steps = _steps(decoder)
    if any(step.get("type") == "ByteLevel" for step in steps):
        return readable_bytes
    if any(step.get("type") == "Metaspace" or _replaces_meta(step) for step in steps):
        return readable_meta
    return str


def _steps(decoder: dict[str, Any] | None) -> list[dict[str, Any]]:
    if decoder is None:
        return []
    inner = decoder.get("decoders")
    return inner if isinstance(inner, list) else [decoder]


def _replaces_meta(step: dict[str, Any]) -> bool:
    return step.get("type") == "Replace" and step.get("pattern") == {"String": META_SPACE}
