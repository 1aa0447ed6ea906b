"""A text and the tokens that a model read it as: the names of rows and columns."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from clearhead.errors import InputError
from clearhead.text.spelling import readable
from clearhead.text.token import Token
from clearhead.text.tokenizer import Tokenizer, check_text


@dataclass(frozen=True)
class Passage:
    """A text with its tokens; each knows its characters, ``text[token.start:token.end]``."""

    text: str
    tokens: tuple[Token, ...]

    def __len__(self) -> int:
        return len(self.tokens)

    def positions(self, word: str) -> list[list[int]]:
        """Everywhere that ``word`` stands, each place as the positions of its tokens.

        A token counts as it reads, with or without the space it begins with. Otherwise the word is
        looked for in the text, where several tokens may spell it.
        """
        check_text(word, "word")
        exact = [[i] for i, token in enumerate(self.tokens) if token.text == word]
        if exact:
            return exact
        stripped = [[i] for i, token in enumerate(self.tokens) if token.text.strip() == word]
        return stripped or self._spelled(word)

    def _spelled(self, word: str) -> list[list[int]]:
        """Positions of the text where whole tokens, one after the other, spell the word."""
        found, start = [], self.text.find(word) if word.strip() else -1
        while start >= 0:
            end = start + len(word)
            inside = [i for i, token in enumerate(self.tokens) if self._within(token, start, end)]
            if inside and self._covered(inside) == word.strip():
                found.append(inside)
            start = self.text.find(word, end)
        return found

    def _within(self, token: Token, start: int, end: int) -> bool:
        if token.special or token.start == token.end:
            return False
        spaces = len(self.text[token.start : token.end]) - len(
            self.text[token.start : token.end].lstrip()
        )
        return start <= token.start + spaces < end and token.end <= end

    def _covered(self, inside: list[int]) -> str:
        first, last = self.tokens[inside[0]], self.tokens[inside[-1]]
        return self.text[first.start : last.end].strip()


def check_tokenizer(tokenizer: object) -> None:
    """Refuse what is no tokenizer; a slow one of ``transformers`` can at least decode."""
    if tokenizer is not None and not (
        isinstance(tokenizer, Tokenizer)
        or (callable(tokenizer) and callable(getattr(tokenizer, "decode", None)))
    ):
        raise InputError(
            "tokenizer must be one of clearhead.text or of transformers; "
            f"{type(tokenizer).__name__} came."
        )


def passage_of(tokenizer: object, text: str) -> Passage:
    """The text as a tokenizer cuts it: one of ours, or a fast one of ``transformers``."""
    check_text(text)
    if isinstance(tokenizer, Tokenizer):
        return Passage(text, tuple(tokenizer.tokens(text)))
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None or not callable(tokenizer):
        raise InputError(
            "tokens need a tokenizer of clearhead.text or a fast one of transformers; "
            f"{type(tokenizer).__name__} came.",
            hint="a slow tokenizer does not know which characters a token came from: "
            "AutoTokenizer.from_pretrained(…, use_fast=True).",
        )
    return Passage(text, tuple(_fast_tokens(tokenizer, backend, text)))


def passage_of_ids(tokenizer: object, ids: list[int]) -> Passage:
    """The text that ids spell, as after generation.

    Where cutting that text again gives other ids (models may spell a word in unusual pieces), each
    token's characters are what the tokenizer decodes from it alone.
    """
    whole = _decoded(tokenizer, ids)
    again = passage_of(tokenizer, whole)
    plain = Passage(whole, tuple(token for token in again.tokens if token.start < token.end))
    for passage in (again, plain):
        if [token.id for token in passage.tokens] == list(ids):
            return passage
    return _piecewise(tokenizer, ids)


def _decoded(tokenizer: Any, ids: list[int]) -> str:
    if isinstance(tokenizer, Tokenizer):
        return tokenizer.decode(ids, skip_special=False)
    return str(tokenizer.decode(ids, skip_special_tokens=False))


def _piecewise(tokenizer: object, ids: list[int]) -> Passage:
    text, tokens = "", []
    for id in ids:
        piece = _decoded(tokenizer, [id])
        tokens.append(Token(id, piece, len(text), len(text) + len(piece)))
        text += piece
    return Passage(text, tuple(tokens))


def _fast_tokens(tokenizer: Any, backend: Any, text: str) -> list[Token]:
    coded = tokenizer(text, return_offsets_mapping=True, return_special_tokens_mask=True)
    decoder = json.loads(backend.decoder.__getstate__()) if backend.decoder else None
    as_read = readable(decoder)
    tokens, position = [], 0
    for id, (start, end), special in zip(
        coded["input_ids"], coded["offset_mapping"], coded["special_tokens_mask"], strict=True
    ):
        if special and start == end:
            start = end = position
        position = end
        piece = tokenizer.convert_ids_to_tokens(id)
        tokens.append(Token(id, as_read(piece), start, end, bool(special)))
    return tokens
