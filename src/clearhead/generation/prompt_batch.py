"""The batch of prompts that decoding starts from, and the limit of the context length."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from clearhead.arguments import flag
from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.generation.prompt import Prompt, bos_of, decoder_start_ids, prompt_rows
from clearhead.generation.row import Row
from clearhead.generation.stop_strings import StopStrings
from clearhead.text.stream_decoder import StreamDecoder
from clearhead.text.tokenizer import Tokenizer

STREAM_CONTEXT = 8  # tokens of the prompt: enough to hold a whole character


@dataclass(frozen=True)
class PromptBatch:
    """The ids that the decoder starts from, and the sources of an encoder-decoder model.

    ``context`` is the context length. With ``slides``, a text that exceeds it drops its beginning.
    """

    ids: list[list[int]]
    sources: list[list[int]] | None
    context: int | None
    slides: bool
    bos: int | None

    @classmethod
    def of(cls, loaded: Loaded, prompt: Prompt, *, slide: bool = False) -> PromptBatch:
        """Make the batch from a prompt as a user gives it."""
        slide = flag("slide", slide)
        rows, bos, context = (
            prompt_rows(loaded, prompt),
            bos_of(loaded),
            loaded.config.longest_text,
        )
        if loaded.config.kind == "encoder-decoder":
            if slide:
                raise InputError("slide drops the beginning of a text; a source is read whole.")
            for ids in rows:
                check_fits(ids, context)
            return cls([decoder_start_ids(loaded) for _ in rows], rows, context, False, bos)
        if slide and context is not None:
            rows = [keep_latest_half(ids, context, bos) if len(ids) > context else ids
                    for ids in rows]  # fmt: skip
        for ids in rows:
            check_fits(ids, context)
        return cls(rows, None, context, slide, bos)

    def rows(
        self,
        loaded: Loaded,
        samples: int,
        stops: tuple[str, ...],
        seed: int,
        limits: Sequence[int],
    ) -> list[Row]:
        """Make a row for each text. Sample i of every prompt gets the same random seed.

        ``limits`` are the largest numbers of tokens after each prompt.
        """
        return [
            Row(
                prompt_index=prompt_index,
                sample=sample,
                prompt=ids,
                window=list(ids),
                stream=self._stream(loaded.tokenizer, ids),
                stop_strings=StopStrings(stops),
                generator=random.Random(f"{seed}/{sample}"),
                limit=limits[prompt_index],
            )
            for prompt_index, ids in enumerate(self.ids)
            for sample in range(samples)
        ]

    def _stream(self, tokenizer: Tokenizer | None, ids: list[int]) -> StreamDecoder | None:
        """A decoder that has read the prompt's end: a space after it is a part of the text."""
        if tokenizer is None:
            return None
        stream = tokenizer.stream()
        for id in ids[-STREAM_CONTEXT:] if self.sources is None else ():
            if id < tokenizer.size:
                stream.push(id)
        return stream

    def exceeds_context(self, row: Row) -> bool:
        """True if the newest token of a row does not fit into the context."""
        return self.context is not None and len(row.window) > self.context

    def slide(self, row: Row) -> None:
        """Drop the beginning of a row that exceeds the context."""
        if self.exceeds_context(row) and self.context is not None:
            row.window = keep_latest_half(row.window, self.context, self.bos)


def check_fits(ids: list[int], context: int | None) -> None:
    """Raise an InputError if a prompt is longer than the context."""
    if context is not None and len(ids) > context:
        raise InputError(
            f"the prompt has {len(ids)} tokens, and this model's context holds {context}.",
            hint="shorten it, or let its beginning be dropped: slide=True (--slide).",
        )


def keep_latest_half(ids: list[int], context: int, bos: int | None) -> list[int]:
    """Keep the latest ids, half a context of them; a BOS token stays in front."""
    kept = max(1, context // 2)
    if len(ids) <= kept:
        return list(ids)
    return [bos, *ids[len(ids) - kept + 1 :]] if bos is not None and ids[0] == bos else ids[-kept:]
