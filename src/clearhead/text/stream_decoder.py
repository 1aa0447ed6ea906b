"""Streaming decoding: ids in, one at a time; text out as soon as no later id can change it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from clearhead.arguments import whole_number

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
LONGEST_WINDOW = 32  # ids without a whole character at the end; beyond, the bytes are no text
UNFINISHED = 3  # a character of UTF-8 has at most four bytes: three can wait for their last


class StreamDecoder:
    """Decodes a stream of ids without ever decoding it from the start again.

    Only a short window is decoded: the ids of the last finished characters, as context (the first
    token of a text is often decoded differently: SentencePiece drops its leading space), and the
    ids after them. U+FFFD at the end means bytes of an unfinished character; they are held back.
    All pieces together are ``decode`` of all ids. Only where the ids are no valid UTF-8 and the
    tokenizer falls back to bytes may more good characters survive here than in ``decode``.
    """

    def __init__(
        self, decode: Callable[[Sequence[int]], str], skipped: frozenset[int] = frozenset()
    ) -> None:
        self._decode = decode
        self._skipped = skipped
        self._window: list[int] = []
        self._context = 0  # leading ids of the window whose text was returned already
        self._emitted = 0  # characters of the window's text that were returned already

    def push(self, id: int) -> str:
        """Take one id; return the text that is certain now, often one word, sometimes nothing."""
        id = whole_number("id", id)
        if id in self._skipped:
            return ""
        text = self._decode([*self._window, id])  # which refuses an id that there is not
        self._window.append(id)
        unfinished = len(text) - len(text.rstrip(REPLACEMENT))
        if len(self._window) > LONGEST_WINDOW:
            unfinished = min(unfinished, UNFINISHED)
        piece = text[self._emitted : len(text) - unfinished]
        self._emitted += len(piece)
        if piece and not unfinished:
            self._shorten(self._context, 0)
        elif len(self._window) > LONGEST_WINDOW:
            self._shorten(len(self._window) - UNFINISHED - 1, unfinished)
        return piece

    def flush(self) -> str:
        """The rest that was held back, with U+FFFD for what never became a character."""
        text = self._decode(self._window) if self._window else ""
        rest = text[self._emitted :]
        self._window, self._context, self._emitted = [], 0, 0
        return rest

    def _shorten(self, start: int, unfinished: int) -> None:
        self._window = self._window[start:]
        self._context = len(self._window)
        self._emitted = max(0, len(self._decode(self._window)) - unfinished)
