"""The tokenizer of a run: made from the texts, or taken from a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from clearhead.errors import InputError
from clearhead.text.characters import CharacterTokenizer
from clearhead.text.folder import load_tokenizer
from clearhead.text.subwords.training import train_bpe
from clearhead.text.tokenizer import Tokenizer

CHARACTERS_PER_PIECE = 256  # of text for each entry, if no vocabulary size was given
SMALLEST, LARGEST = 384, 8192


def make_tokenizer(
    kind: str,
    texts: Sequence[str],
    *,
    size: int | None = None,
    add_bos: bool = False,
    add_eos: bool = False,
) -> Tokenizer:
    """``bpe`` and ``characters`` learn their vocabulary from the texts; a folder has its own."""
    if kind == "characters":
        if size is not None:
            raise InputError("a vocabulary size is for bpe; with characters, the texts decide it.")
        return CharacterTokenizer.from_texts(texts, add_bos=add_bos, add_eos=add_eos)
    if kind != "bpe":
        if size is not None:
            raise InputError(f"a vocabulary size is for bpe; the tokenizer in {kind} has its own.")
        if not Path(kind).is_dir():
            raise InputError(f"a tokenizer is bpe, characters or a folder with one; got {kind!r}.")
        return load_tokenizer(kind)
    chosen = fitting_size(texts) if size is None else size
    tokenizer = train_bpe(texts, chosen, add_bos=add_bos, add_eos=add_eos)
    if size is not None and tokenizer.size < size:
        raise InputError(
            f"a vocabulary of {size} is too large for these texts: there are only "
            f"{tokenizer.size} different pieces in them.",
            hint=f"ask for at most {tokenizer.size}; about {fitting_size(texts)} would fit.",
        )
    return tokenizer


def fitting_size(texts: Sequence[str]) -> int:
    """A vocabulary size at which each entry occurs often enough to be learned."""
    return max(SMALLEST, min(LARGEST, sum(map(len, texts)) // CHARACTERS_PER_PIECE))
