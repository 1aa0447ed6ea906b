"""One token: an entry of the vocabulary, and the characters of the text it came from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Token:
    """A vocabulary entry and the characters it stands for, ``text[start:end]``.

    ``text`` is the entry as a person reads it: a space is a space (not ``Ġ`` or ``▁``), a WordPiece
    continuation keeps its ``##``, bytes that are no whole character are written ``<0xE4>``.

    Byte-level tokenizers can split one character over several tokens; each of them then carries the
    span of the whole character(s) it is a part of, so neighbouring spans may overlap.
    A special token that the tokenizer added by itself has an empty span at its place.
    """

    id: int
    text: str
    start: int
    end: int
    special: bool = False
