"""Chunks of a document have the same ids as the document: for every kind of tokenizer."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import lru_cache
from pydoc_data.topics import topics

import numpy as np
import pytest

from clearhead.text.characters import CharacterTokenizer
from clearhead.text.subwords.training import train_bpe, train_unigram, train_wordpiece
from clearhead.text.tokenizer import Tokenizer
from clearhead.text.words import WordTokenizer
from clearhead.training.data.tokens.chunks import AROUND, Chunks
from clearhead.training.data.tokens.encoder import Encoder

TEXT = "\n".join(text for _, text in sorted(topics.items())[:30])
ALPHABET = "ab \n.,é漢字-_9\t\u3000"
KINDS = ("bpe", "wordpiece", "unigram", "words", "characters")


@lru_cache
def tokenizer(kind: str) -> Tokenizer:
    if kind == "characters":
        return CharacterTokenizer.from_texts(TEXT[:20_000])
    if kind == "words":
        return WordTokenizer.from_texts([TEXT[:20_000]])
    training: dict[str, Callable[[list[str], int], Tokenizer]] = {
        "bpe": train_bpe, "wordpiece": train_wordpiece, "unigram": train_unigram,
    }  # fmt: skip
    return training[kind]([TEXT[:40_000]], 600)


def chunked(text: str, encoder: Encoder, size: int, block: int) -> tuple[list[int], int]:
    chunks, found = Chunks(encoder.encode, size), []
    for at in range(0, len(text), block):
        found += list(chunks.feed(text[at : at + block]))
    found += list(chunks.close())
    ids = [encoder.encode([chunk.text])[0][chunk.skip :] for chunk in found]
    return np.concatenate([np.zeros(0, np.int64), *ids]).tolist(), len(found)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_ids_as_the_whole(kind: str) -> None:
    encoder = Encoder(tokenizer(kind))
    text = TEXT[:60_000]
    ids, count = chunked(text, encoder, 2000, 4999)
    assert ids == encoder.encode([text])[0].tolist()
    assert count > 20


@pytest.mark.parametrize("kind", KINDS)
def test_texts_of_every_kind(kind: str) -> None:
    """Few spaces, many, other scripts: generated."""
    encoder = Encoder(tokenizer(kind))
    for seed in range(12):
        draw = random.Random(seed)
        weights = [draw.random() ** 3 for _ in ALPHABET]
        text = "".join(draw.choices(ALPHABET, weights, k=3 * AROUND + draw.randrange(3000)))
        ids, _ = chunked(text, encoder, 700, 811)
        assert ids == encoder.encode([text])[0].tolist(), seed


def test_a_text_without_any_place_to_cut_is_one_chunk() -> None:
    encoder = Encoder(tokenizer("bpe"))
    text = "x" * 5000
    ids, count = chunked(text, encoder, 700, 811)
    assert count == 1 and ids == encoder.encode([text])[0].tolist()


def test_documents_do_not_mix() -> None:
    chunks = Chunks(Encoder(tokenizer("bpe")).encode, 700)
    for text in ("one", "two"):
        assert [chunk.text for chunk in (*chunks.feed(text), *chunks.close())] == [text]
    assert list(chunks.close()) == []
