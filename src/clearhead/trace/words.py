"""Subwords merged to words: attention into a word is summed, out of a word averaged.

What a word is, is decided on the text, not on the vocabulary, so BPE with leading spaces, WordPiece
with ``##`` and byte pieces are all treated alike:

- a run of letters, digits, accents and underscores is a word, apostrophes inside it included;
- any other character that is not white space is a mark of its own: ``!`` is no part of a word;
- white space belongs to the word that follows in the same token; a token of nothing else, and every
  special token, stands alone;
- neighbouring tokens with characters of the same word, or mark, are merged (a token such as ``");``
  that holds several marks stays one);
- scripts without spaces give one word for each run between marks.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from clearhead.errors import InputError
from clearhead.text.words import WordTokenizer
from clearhead.trace.passage import Passage


@dataclass(frozen=True, slots=True)
class Word:
    """A word, the positions of its tokens, and its characters ``text[start:end]``."""

    text: str
    positions: range
    start: int
    end: int


def words_of(passage: Passage) -> list[Word]:
    """The words of a passage, in order; every token belongs to exactly one."""
    spans = list(WordTokenizer.spans(passage.text))
    found: list[Word] = []
    last = -1
    for position, token in enumerate(passage.tokens):
        first, final = _marks_of(passage.text, spans, token.start, token.end)
        if token.special or first < 0 or first != last or not found:
            found.append(_word(passage, range(position, position + 1)))
        else:
            found[-1] = _word(passage, range(found[-1].positions.start, position + 1))
        last = -1 if token.special else final
    return found


def _marks_of(text: str, spans: list[tuple[int, int]], start: int, end: int) -> tuple[int, int]:
    """The first and the last word or mark (by number) that text[start:end] touches; −1: none."""
    piece = text[start:end]
    if not piece.strip():
        return -1, -1
    start += len(piece) - len(piece.lstrip())
    end -= len(piece) - len(piece.rstrip())
    first = bisect_right(spans, (start, len(text) + 1)) - 1
    return first, bisect_right(spans, (end - 1, len(text) + 1)) - 1


def _word(passage: Passage, positions: range) -> Word:
    tokens = passage.tokens[positions.start : positions.stop]
    start, end = tokens[0].start, max(token.end for token in tokens)
    text = passage.text[start:end]
    if not text:  # a special token: it has no characters
        return Word(tokens[0].text, positions, start, end)
    lead = len(text) - len(text.lstrip()) if text.strip() else 0
    return Word(text[lead:], positions, start + lead, end)


def word_groups(words: list[Word], tokens: int) -> Iterator[tuple[int, list[Word]]]:
    """Consecutive words of at most so many tokens (or a single longer word), each group with the
    number of its first word."""
    first = 0
    for place in range(len(words)):
        ends = place + 1 == len(words)
        if ends or words[place + 1].positions.stop - words[first].positions.start > tokens:
            yield first, words[first : place + 1]
            first = place + 1


@dataclass(frozen=True)
class WordWeights:
    """Attention from words to words; ``weights[…, i, j]`` is what word i gives to word j."""

    weights: Float[Tensor, "*head query key"]
    rows: list[Word]
    columns: list[Word]


def merge_columns(
    weights: Float[Tensor, "*head query key"], words: list[Word]
) -> Float[Tensor, "*head query word"]:
    """Attention into a word: the sum over its tokens."""
    owners = _owners(words, weights.shape[-1])
    merged = weights.new_zeros(*weights.shape[:-1], len(words))
    return merged.index_add_(-1, owners.to(weights.device), weights)


def merge_rows(
    weights: Float[Tensor, "*head query key"], words: list[Word]
) -> Float[Tensor, "*head word key"]:
    """Attention out of a word: the mean over its tokens."""
    owners = _owners(words, weights.shape[-2]).to(weights.device)
    merged = weights.new_zeros(*weights.shape[:-2], len(words), weights.shape[-1])
    merged.index_add_(-2, owners, weights)
    counts = torch.tensor([len(word.positions) for word in words], device=weights.device)
    return merged / counts[:, None]


def _owners(words: list[Word], tokens: int) -> Tensor:
    """For each token, the number of its word."""
    counts = torch.tensor([len(word.positions) for word in words])
    if int(counts.sum()) != tokens:
        raise InputError(
            f"the words cover {int(counts.sum())} tokens, but the weights have {tokens}.",
            hint="do the tokens belong to this trace?",
        )
    return torch.repeat_interleave(torch.arange(len(words)), counts)
