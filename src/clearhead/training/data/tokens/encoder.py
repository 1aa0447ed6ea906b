"""Many texts to ids at once, as a model is to learn them.

What looks like a special token in a text stays text: whoever trains on a page about tokenizers
does not want its ``<eos>`` to end a document.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from clearhead.errors import InputError
from clearhead.text.characters import CharacterTokenizer
from clearhead.text.subwords.rust_guard import rust_errors
from clearhead.text.subwords.tokenizer import SubwordTokenizer
from clearhead.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    import tokenizers

PROBE = "a"  # a text that every tokenizer knows, or calls unknown
NEVER = -1e6  # the logarithm of a probability
CHARACTERS = 0x110000  # code points of Unicode


class Encoder:
    """A tokenizer for training: ids of many texts, and what a document begins and ends with.

    ``before`` and ``after`` are the special tokens that the tokenizer itself adds to a text; with
    ``ends``, a document ends with ``<eos>`` in any case.
    """

    def __init__(self, tokenizer: Tokenizer, *, ends: bool = False) -> None:
        self.tokenizer = tokenizer
        self.before, self.after = _added(tokenizer)
        eos = tokenizer.specials.eos
        if ends and eos is not None and self.after[-1:] != [eos]:
            self.after = [*self.after, eos]
        self._backend = _literal(tokenizer) if isinstance(tokenizer, SubwordTokenizer) else None
        self._table = _table(tokenizer) if isinstance(tokenizer, CharacterTokenizer) else None
        self.dtype = np.dtype(np.uint16 if tokenizer.size <= 1 << 16 else np.uint32)

    def encode(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """The ids of each text, without those that begin and end a document."""
        if self._backend is not None:
            with rust_errors("encoding"):
                found = self._backend.encode_batch_fast(list(texts), add_special_tokens=False)
            return [np.array(one.ids, np.int64) for one in found]
        if self._table is not None:
            return [self._table[np.frombuffer(t.encode("utf-32-le"), np.uint32)] for t in texts]
        return [np.array(self.tokenizer.encode(t, special=False), np.int64) for t in texts]

    def document(self, text: str) -> list[int]:
        """A whole document, with what it begins and ends with."""
        return [*self.before, *self.encode([text])[0].tolist(), *self.after]

    @property
    def unknown(self) -> int | None:
        """The id of what the vocabulary does not have, if there is one."""
        return self.tokenizer.specials.unk


def _added(tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    """The special tokens that a tokenizer puts before and after a text."""
    plain, whole = tokenizer.encode(PROBE, special=False), tokenizer.encode(PROBE)
    for at in range(len(whole) - len(plain) + 1):
        if whole[at : at + len(plain)] == plain:
            return whole[:at], whole[at + len(plain) :]
    raise InputError("this tokenizer changes a text when it adds its special tokens to it.")


def _literal(tokenizer: SubwordTokenizer) -> tokenizers.Tokenizer:
    """A copy that reads the names of special tokens as plain text."""
    from tokenizers import Tokenizer as Backend

    content = json.loads(tokenizer.backend.to_str())
    if content["model"]["type"] == "Unigram":  # its vocabulary has them as pieces of text, too
        vocabulary = content["model"]["vocab"]
        for id in tokenizer.specials.all - {tokenizer.specials.unk}:
            if id < len(vocabulary):
                vocabulary[id][1] = NEVER
    with rust_errors("copying the tokenizer", InputError):
        backend = Backend.from_str(json.dumps(content))
        backend.encode_special_tokens = True
        return backend


def _table(tokenizer: CharacterTokenizer) -> NDArray[np.int64]:
    """The id of every code point."""
    assert tokenizer.specials.unk is not None
    table = np.full(CHARACTERS, tokenizer.specials.unk, np.int64)
    for id in range(tokenizer.size):
        piece = tokenizer.piece(id)
        if len(piece) == 1 and id not in tokenizer.specials.all:
            table[ord(piece)] = id
    return table
