"""Documents in chunks that can be tokenised one by one, to the same ids as the whole.

A tokenizer splits a text into words and looks at nothing beyond them. So a document is cut between
two words, and each cut is tried: around it, the text as a whole has the same ids as its two sides.
A chunk brings a few characters of what was before it, whose ids are dropped again: some tokenizers
put something before the first word of a text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

CHUNK = 1 << 15  # characters
AROUND = 256  # characters on each side on which a cut is tried
BEFORE = 48  # characters that a chunk brings along
TRIES = 24  # places that are tried before a chunk becomes longer
MOST = 1 << 22  # characters; behind so many without a place to cut, any will do
PLACES = (
    re.compile(r"(?<=[^\W_])(?=\s)"),  # the end of a word
    re.compile(r"(?<=\w)(?=[^\w\s])|(?<=[^\w\s])(?=\w)"),  # elsewhere: between a word and a sign
)
EncodeMany: TypeAlias = Callable[[Sequence[str]], list[NDArray[np.int64]]]


class Chunk(NamedTuple):
    """A piece of text; the first ``skip`` of its ids belong to what was before it."""

    text: str
    skip: int


class Chunks:
    """Cuts one document after another; ``encode`` gives the ids of texts, without special ones."""

    def __init__(self, encode: EncodeMany, size: int = CHUNK) -> None:
        self._encode, self._size = encode, size
        self._begin()

    def _begin(self) -> None:
        self._text, self._context, self._skip, self._wanted = "", "", 0, self._size

    def feed(self, text: str) -> Iterator[Chunk]:
        """Take more of a document; yield the chunks that are complete."""
        self._text += text
        while len(self._text) >= self._wanted + AROUND:
            place = self._place()
            if place is None:
                self._wanted += self._size
                continue
            at, skip = place
            yield Chunk(self._context + self._text[:at], self._skip)
            self._context, self._skip = self._text[max(0, at - BEFORE) : at], skip
            self._text, self._wanted = self._text[at:], self._size

    def close(self) -> Iterator[Chunk]:
        """The rest of the document; the next one may begin."""
        if self._text:
            yield Chunk(self._context + self._text, self._skip)
        self._begin()

    def _place(self) -> tuple[int, int] | None:
        """Where to cut, and how many ids the context of the next chunk has."""
        low = max(self._wanted - self._size // 2, BEFORE)
        for pattern in PLACES:
            found = [match.start() for match in pattern.finditer(self._text, low, self._wanted)]
            for at in reversed(found[-TRIES:]):
                skip = self._tried(at)
                if skip is not None:
                    return at, skip
        if self._wanted < MOST:
            return None
        return self._wanted, len(
            self._encode([self._text[self._wanted - BEFORE : self._wanted]])[0]
        )

    def _tried(self, at: int) -> int | None:
        """The number of ids of the context, if a cut here changes nothing."""
        left = self._text[max(0, at - AROUND) : at]
        context, right = self._text[at - BEFORE : at], self._text[at : at + AROUND]
        whole, before, brought, after = (
            ids.tolist() for ids in self._encode([left + right, left, context, context + right])
        )
        skip = len(brought)
        same = after[:skip] == brought and whole == before + after[skip:]
        return skip if same else None
