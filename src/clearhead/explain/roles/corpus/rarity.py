"""Word counts of a corpus, in memory that does not grow with it."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import numpy as np

from clearhead.explain.roles.corpus.sentence import Sentence

CELLS = 1 << 20  # hash collisions begin with hundreds of thousands of different words


class WordCounts:
    """Counts of words in lower case; two words may share a cell, and then count as one."""

    def __init__(self) -> None:
        self._cells = np.zeros(CELLS, dtype=np.int64)

    @classmethod
    def of_sentences(cls, sentences: Iterable[Sentence]) -> WordCounts:
        """The counts of all words of these sentences."""
        counts = cls()
        for sentence in sentences:
            np.add.at(counts._cells, [_cell(word.text) for word in sentence.words], 1)
        return counts

    def __getitem__(self, word: str) -> int:
        return int(self._cells[_cell(word)])


def _cell(word: str) -> int:
    return zlib.crc32(word.lower().encode("utf-8", "surrogatepass")) % CELLS
