"""A tokenizer whose tokens are characters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from clearhead.text.vocabulary import VocabularyTokenizer


class CharacterTokenizer(VocabularyTokenizer):
    """One token per character (Unicode code point); ``decode`` gives the text back exactly."""

    kind: ClassVar[str] = "characters"

    @staticmethod
    def spans(text: str) -> Iterator[tuple[int, int]]:
        """One span per character."""
        return ((index, index + 1) for index in range(len(text)))

    @staticmethod
    def join(pieces: Sequence[str]) -> str:
        """The characters side by side."""
        return "".join(pieces)
