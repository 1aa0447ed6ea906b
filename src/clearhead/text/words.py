"""A tokenizer whose tokens are words and punctuation marks."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from typing import ClassVar

from clearhead.text.vocabulary import VocabularyTokenizer

APOSTROPHES = "'’"
CLOSING = frozenset(".,;:!?%)]}…’”»。，、！？）」』")
OPENING = frozenset("([{‘“«¿¡（「『$€£#")


class WordTokenizer(VocabularyTokenizer):
    """A token is a run of letters, digits and underscores, or one other character.

    Apostrophes inside a word belong to it (``don't``), accents and vowel signs to what they follow,
    white space to nothing. ``decode`` therefore cannot know the white space of the original: it
    puts one space between tokens, none before closing and none after opening punctuation.
    Ordinary prose with single spaces comes back as it was; line breaks, indentation, straight
    quotation marks and hyphens (``well - known``) do not.
    """

    kind: ClassVar[str] = "words"

    @staticmethod
    def spans(text: str) -> Iterator[tuple[int, int]]:
        """Yield where words and marks begin and end."""
        start = 0
        while start < len(text):
            end = start + 1
            if _is_word(text[start]):
                end = _word_end(text, start)
            while end < len(text) and _is_mark(text[end]):
                end += 1
            if not text[start].isspace():
                yield start, end
            elif end > start + 1:  # an accent on a space
                yield start + 1, end
            start = end

    @staticmethod
    def join(pieces: Sequence[str]) -> str:
        """The words with the spaces that prose would have."""
        parts: list[str] = []
        for index, piece in enumerate(pieces):
            glued = index == 0 or piece[0] in CLOSING or pieces[index - 1][-1] in OPENING
            parts.append(piece if glued else f" {piece}")
        return "".join(parts)


def _word_end(text: str, start: int) -> int:
    end = start + 1
    while end < len(text):
        apostrophe = text[end] in APOSTROPHES and _is_word(text[end + 1 : end + 2])
        if not (apostrophe or _is_word(text[end]) or _is_mark(text[end])):
            break
        end += 1
    return end


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _is_mark(character: str) -> bool:
    return unicodedata.category(character).startswith("M")
