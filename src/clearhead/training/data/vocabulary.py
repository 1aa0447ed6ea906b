"""The tokenizer of a run: made from the texts, or taken from a folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from clearhead.errors import InputError
from clearhead.text.characters import CharacterTokenizer
from clearhead.text.folder import load_tokenizer
from clearhead.text.subwords.training import train_bpe
from clearhead.text.tokenizer import Tokenizer

CHARACTERS_PER_PIECE = 256  # of text for each entry, if no vocabulary size was given
SMALLEST, LARGEST = 384, 8192
MOST_TEXT = 50_000_000  # characters that a bpe vocabulary is learned from
PIECE = 1 << 15  # characters; several are counted at once, by as many threads as there are
END_OF_WORD = re.compile(r"(?<=\S)(?=[ \n])")


class VocabularySource(NamedTuple):
    """The texts that a vocabulary is made of: they are read, a piece at a time, when called."""

    texts: Callable[[], Iterable[str]]
    characters: int  # of all of them

    @classmethod
    def of(cls, texts: Sequence[str]) -> VocabularySource:
        """Texts that are in memory."""
        return cls(lambda: texts, sum(map(len, texts)))


def make_tokenizer(
    kind: str,
    source: VocabularySource,
    *,
    size: int | None = None,
    add_bos: bool = False,
    add_eos: bool = False,
) -> Tokenizer:
    """``bpe`` and ``characters`` learn their vocabulary from the texts; a folder has its own.

    bpe learns from at most ``MOST_TEXT`` of them: words that are met in a sample that large are
    those that are met in all.
    """
    if kind == "characters":
        if size is not None:
            raise InputError("a vocabulary size is for bpe; with characters, the texts decide it.")
        return CharacterTokenizer.from_texts(source.texts(), add_bos=add_bos, add_eos=add_eos)
    if kind != "bpe":
        if size is not None:
            raise InputError(f"a vocabulary size is for bpe; the tokenizer in {kind} has its own.")
        if not Path(kind).is_dir():
            raise InputError(f"a tokenizer is bpe, characters or a folder with one; got {kind!r}.")
        return load_tokenizer(kind)
    chosen = fitting_size(source.characters) if size is None else size
    sample = pieces(sampled(source.texts(), source.characters, MOST_TEXT))
    tokenizer = train_bpe(sample, chosen, add_bos=add_bos, add_eos=add_eos)
    if size is not None and tokenizer.size < size:
        raise InputError(
            f"a vocabulary of {size} is too large for these texts: there are only "
            f"{tokenizer.size} different pieces in them.",
            hint=f"ask for at most {tokenizer.size}; about {fitting_size(source.characters)} would "
            "fit.",
        )
    return tokenizer


def fitting_size(characters: int) -> int:
    """A vocabulary size at which each entry occurs often enough in a text of this length."""
    return max(SMALLEST, min(LARGEST, characters // CHARACTERS_PER_PIECE))


def sampled(texts: Iterable[str], characters: int, most: int) -> Iterator[str]:
    """At most about ``most`` characters: all of a short text, else parts from all over it."""
    step = characters / most
    place = taken = 0.0
    for text in texts:
        if step <= 1 or taken * step <= place:
            yield text
            taken += len(text)
        place += len(text)


def pieces(texts: Iterable[str]) -> Iterator[str]:
    """Texts in pieces that end where a word does: the words are the same, memory is bounded."""
    for text in texts:
        begin = 0
        while len(text) - begin > PIECE:
            match = END_OF_WORD.search(text, begin + PIECE)
            end = len(text) if match is None else match.start()
            yield text[begin:end]
            begin = end
        yield text[begin:]
