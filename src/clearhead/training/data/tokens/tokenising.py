"""Texts become tokens: once, in parallel, a few megabytes at a time."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clearhead.training.data.corpus import Corpus
from clearhead.training.data.tokens.chunks import Chunk, Chunks
from clearhead.training.data.tokens.data import DataFacts, KeptSource, PartFacts, TokenData
from clearhead.training.data.tokens.encoder import Encoder
from clearhead.training.data.tokens.file import TokenFile, TokenWriter
from clearhead.training.data.tokens.survey import EVERY, Survey
from clearhead.training.events import Read

LONGEST_WORD = 1 << 22
TOGETHER = 1 << 20  # characters that are tokenised at once, by as many threads as there are


@dataclass(frozen=True)
class Surveyed:
    """A corpus, its survey, and how many characters of each document are learned."""

    corpus: Corpus
    survey: Survey
    cuts: NDArray[np.int64]

    @property
    def learned(self) -> int:
        """How many characters are learned."""
        return int(self.cuts[self.survey.kept].sum())

    @property
    def learned_documents(self) -> int:
        """How many documents have something to learn in them."""
        return int((self.cuts[self.survey.kept] > 0).sum())

    @property
    def held_out(self) -> str:
        """What is held out, in words."""
        cuts, lengths = self.cuts[self.survey.kept], self.survey.characters[self.survey.kept]
        whole = int((cuts == 0).sum())
        ends = int(((cuts > 0) & (cuts < lengths)).sum())
        if not whole and ends == len(cuts):
            return "the end of the text" if ends == 1 else f"the end of each of {ends:,} texts"
        said = [f"{whole:,} of {len(cuts):,} texts"] if whole else []
        return " and ".join(said + ([f"the end of {ends:,}"] if ends else []))

    def texts(self) -> Iterator[str]:
        """What is learned, in pieces that end where a word or a document does."""
        current, place, carried = -1, 0, ""
        for block in self.corpus.blocks():
            if block.document != current:
                yield carried
                current, place, carried = block.document, 0, ""
            if self.survey.blank[current] or place >= self.cuts[current]:
                continue
            text = carried + block.text[: int(self.cuts[current]) - place]
            place += len(block.text)
            end = _last_end_of_word(text)
            yield text[:end]
            carried = text[end:]
        yield carried

    @property
    def sources(self) -> list[KeptSource]:
        """Its files as they were read."""
        return [
            KeptSource(str(file.path), file.size, file.changed, file.lines, checksum)
            for file, checksum in zip(self.corpus.files, self.survey.files, strict=True)
        ]


def _last_end_of_word(text: str) -> int:
    """The last place where a word ends; of a very long word, the end of the text."""
    for at in range(len(text) - 1, 0, -1):
        if text[at] in " \n" and not text[at - 1].isspace():
            return at
    return 0 if len(text) < LONGEST_WORD else len(text)


def tokenised(
    corpora: Sequence[Surveyed], encoder: Encoder, folder: Path | None
) -> Generator[Read, None, TokenData]:
    """Tokenise; into a folder, or into memory if there is none. The generator returns the data."""
    size = sum(one.corpus.size for one in corpora)
    with ExitStack() as stack:
        parts = {
            name: _Part(stack.enter_context(TokenWriter(folder, name, encoder.dtype)))
            for name in ("learned", "held")
        }
        queue = stack.enter_context(_Queue(encoder))
        done = 0
        for one in corpora:
            for read in _documents(one, parts["learned"], parts["held"], queue):
                yield Read("tokenising", done + read, size)
            done += one.corpus.size
        queue.flush()
        queue.write()
        learned, held = (part.finished() for part in parts.values())
    facts = DataFacts(
        encoder.dtype.name, learned[1], held[1], tuple(s for one in corpora for s in one.sources)
    )
    data = TokenData(learned[0], held[0], facts)
    if folder is not None:
        data.write_facts(folder)
    return data


def _documents(one: Surveyed, learned: _Part, held: _Part, queue: _Queue) -> Generator[int]:
    """Hand out every document, cut where it is to be; yield now and then how much was read."""
    current, place, told = -1, 0, 0
    chunks = Chunks(queue.encoder.encode)
    for block in one.corpus.blocks():
        if block.document != current:
            queue.add(chunks.close(), last=True)
            current, place = block.document, 0
        if one.survey.blank[current]:
            continue
        cut = int(one.cuts[current])
        for part, piece in (
            (learned, block.text[: max(0, cut - place)]),
            (held, block.text[max(0, cut - place) :]),
        ):
            if not piece:
                continue
            if queue.part is not part or queue.document != current:
                queue.add(chunks.close(), last=True)
                queue.begin(part, current)
            part.count(piece)
            queue.add(chunks.feed(piece))
        place += len(block.text)
        if block.read >= told + EVERY:
            told = block.read
            yield told
    queue.add(chunks.close(), last=True)


@dataclass
class _Part:
    """The documents that are learned, or those that are held out."""

    writer: TokenWriter
    documents: int = 0
    characters: int = 0
    bytes: int = 0
    unknown: int = 0

    def count(self, piece: str) -> None:
        self.characters += len(piece)
        self.bytes += len(piece.encode())

    def finished(self) -> tuple[TokenFile, PartFacts]:
        file = self.writer.finished()
        return file, PartFacts(
            self.documents, file.total, self.characters, max(0, self.bytes), self.unknown
        )


class _Job(NamedTuple):
    """A chunk, where its ids go, and whether a document begins or ends with it."""

    chunk: Chunk
    part: _Part
    first: bool
    last: bool


@dataclass
class _Queue:
    """Chunks that wait for each other: a batch is tokenised while the next one is read."""

    encoder: Encoder
    part: _Part | None = None
    document: int = -1
    _first: bool = False
    _waiting: list[_Job] = field(default_factory=list)
    _size: int = 0
    _running: tuple[list[_Job], Future[Any]] | None = None
    _worker: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))

    def __enter__(self) -> _Queue:
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.shutdown(cancel_futures=True)

    def begin(self, part: _Part, document: int) -> None:
        """What is added from now on is a document of this part."""
        self.part, self.document, self._first = part, document, True
        part.documents += 1

    def add(self, chunks: Generator[Chunk] | Any, last: bool = False) -> None:
        """Add chunks of the document; with ``last``, they end it."""
        for chunk in chunks:
            assert self.part is not None
            self._waiting.append(_Job(chunk, self.part, self._first, last))
            self._first = False
            self._size += len(chunk.text)
        if self._size >= TOGETHER:
            self.flush()

    def flush(self) -> None:
        """Write the batch before, and let the worker begin with this one."""
        self.write()
        if self._waiting:
            jobs, self._waiting, self._size = self._waiting, [], 0
            texts = [job.chunk.text for job in jobs]
            self._running = (jobs, self._worker.submit(self.encoder.encode, texts))

    def write(self) -> None:
        """Write the ids of the batch that was begun."""
        if self._running is None:
            return
        jobs, result = self._running
        self._running = None
        for job, ids in zip(jobs, result.result(), strict=True):
            self._write(job, ids[job.chunk.skip :])

    def _write(self, job: _Job, ids: NDArray[np.int64]) -> None:
        part, encoder = job.part, self.encoder
        if encoder.unknown is not None:
            part.unknown += int((ids == encoder.unknown).sum())
        if job.first and encoder.before:
            part.writer.write(encoder.before)
        elif job.first and len(ids):  # nothing predicts the first token
            part.bytes -= len(encoder.tokenizer.decode([int(ids[0])]).encode())
        part.writer.write(ids)
        if job.last:
            part.writer.write(encoder.after)
            part.writer.end()
