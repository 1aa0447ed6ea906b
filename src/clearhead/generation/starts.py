"""What each text starts from, and what it may hold."""

from __future__ import annotations

import random
from dataclasses import dataclass

from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.generation.prompt import (
    Prompt,
    bos_of,
    check_fits,
    prompt_rows,
    slid,
    start_ids,
)
from clearhead.generation.row import Row
from clearhead.generation.stop_strings import StopStrings
from clearhead.generation.torch_runner import context_of
from clearhead.text.stream_decoder import StreamDecoder
from clearhead.text.tokenizer import Tokenizer

SEEN_BEFORE = 8  # tokens of the prompt: enough to hold a whole character


@dataclass(frozen=True)
class Starts:
    """The ids that the decoder starts from, and the sources that an encoder reads, if there is one.

    ``context`` bounds what a text may hold; with ``slides`` it forgets its beginning there.
    """

    ids: list[list[int]]
    sources: list[list[int]] | None
    context: int | None
    slides: bool
    bos: int | None

    @classmethod
    def of(cls, loaded: Loaded, prompt: Prompt, *, slide: bool = False) -> Starts:
        """From what a user gives as a prompt."""
        given, bos, context = prompt_rows(loaded, prompt), bos_of(loaded), context_of(loaded.config)
        if loaded.config.kind == "encoder-decoder":
            if slide:
                raise InputError("slide forgets the beginning of a text; a source is read whole.")
            for ids in given:
                check_fits(ids, context)
            return cls([start_ids(loaded) for _ in given], given, context, False, bos)
        if slide and context is not None:
            given = [slid(ids, context, bos) if len(ids) > context else ids for ids in given]
        for ids in given:
            check_fits(ids, context)
        return cls(given, None, context, slide, bos)

    def rows(self, loaded: Loaded, samples: int, stops: tuple[str, ...], seed: int) -> list[Row]:
        """A row for each text; the same chance for the same sample of every prompt."""
        return [
            Row(
                number=number,
                sample=sample,
                prompt=ids,
                window=list(ids),
                stream=self._stream(loaded.tokenizer, ids),
                stops=StopStrings(stops),
                chance=random.Random(f"{seed}/{sample}"),
            )
            for number, ids in enumerate(self.ids)
            for sample in range(samples)
        ]

    def _stream(self, tokenizer: Tokenizer | None, ids: list[int]) -> StreamDecoder | None:
        """A decoder that has just seen the prompt's end: a space after it is a part of the text."""
        if tokenizer is None:
            return None
        stream = tokenizer.stream()
        for id in ids[-SEEN_BEFORE:] if self.sources is None else ():
            if id < tokenizer.size:
                stream.push(id)
        return stream

    def full(self, row: Row) -> bool:
        """Whether the newest token of a row does not fit any more."""
        return self.context is not None and len(row.window) > self.context

    def shorten(self, row: Row) -> None:
        """Let a full row forget its beginning."""
        if self.full(row) and self.context is not None:
            row.window = slid(row.window, self.context, self.bos)
