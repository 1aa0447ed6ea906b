"""The survey of a corpus: one pass that tells the length of each document, and copies from others.

It holds a few numbers for each document, never a text.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from clearhead.training.data.corpus import Corpus
from clearhead.training.events import Read

EVERY = 1 << 24  # bytes between two events
DIGEST = 16  # bytes
Result = TypeVar("Result")


@dataclass(frozen=True)
class Survey:
    """Of each document: its digest, its characters and bytes, and whether it is blank."""

    digests: bytes  # DIGEST bytes each
    characters: NDArray[np.int64]
    sizes: NDArray[np.int64]  # in bytes of UTF-8
    blank: NDArray[np.bool_]
    files: tuple[str, ...] = ()  # the checksum of the text of each file

    def __len__(self) -> int:
        return len(self.characters)

    def digest(self, document: int) -> bytes:
        """What is the same for copies of a document, and for nothing else."""
        return self.digests[document * DIGEST : (document + 1) * DIGEST]

    @property
    def kept(self) -> NDArray[np.int64]:
        """The numbers of the documents that are not blank."""
        return np.flatnonzero(~self.blank)


def surveyed(corpus: Corpus) -> Generator[Read, None, Survey]:
    """Read the corpus once; the survey is what the generator returns."""
    counts, sizes, blank, digests = array("q"), array("q"), array("b"), bytearray()
    running = hashlib.blake2b(digest_size=DIGEST)
    files = [hashlib.blake2b(digest_size=DIGEST) for _ in corpus.files]
    current, told = -1, 0
    for block in corpus.blocks():
        if block.document != current:
            digests += running.digest() if current >= 0 else b""
            running, current = hashlib.blake2b(digest_size=DIGEST), block.document
            counts.append(0)
            sizes.append(0)
            blank.append(True)
        data = block.text.encode()
        running.update(data)
        if block.file >= 0:
            files[block.file].update(data)
        counts[-1] += len(block.text)
        sizes[-1] += len(data)
        blank[-1] = bool(blank[-1]) and not block.text.strip()
        if block.read >= told + EVERY:
            told = block.read
            yield Read("surveying", told, corpus.size)
    digests += running.digest() if current >= 0 else b""
    return Survey(
        bytes(digests), np.array(counts, np.int64), np.array(sizes, np.int64),
        np.array(blank, np.bool_), tuple(one.hexdigest() for one in files),
    )  # fmt: skip


def drained(events: Generator[object, None, Result]) -> Result:
    """What a generator returns, without its events."""
    while True:
        try:
            next(events)
        except StopIteration as end:
            return cast("Result", end.value)
