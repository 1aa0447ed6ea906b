"""Texts to tokens: the same as in memory, for a generated zoo of folders."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clearhead.text.characters import CharacterTokenizer
from clearhead.text.subwords.training import train_bpe
from clearhead.text.tokenizer import Tokenizer
from clearhead.training.data import text_stream
from clearhead.training.data.corpus import Corpus, read_documents
from clearhead.training.data.split import cuts, held_out
from clearhead.training.data.tokens import chunks, tokenising
from clearhead.training.data.tokens.data import TokenData
from clearhead.training.data.tokens.encoder import Encoder
from clearhead.training.data.tokens.survey import drained, surveyed
from clearhead.training.data.tokens.tokenising import Surveyed, tokenised

WORDS = [
    "the", "quick", "brown", "fox", "<eos>", "jumps\nover", "a", "lazy\n\ndog,", "Änderung", "漢字",
    "and", "<pad>", "more.",
]  # fmt: skip
SHARE = 0.1


def zoo(folder: Path, seed: int) -> None:
    """A folder of files of every size, encoding and kind; copies, empty ones, single lines."""
    draw = random.Random(seed)
    (folder / "deep" / "er").mkdir(parents=True)
    known = ["one line"]
    for number in range(draw.choice((1, 3, 25, 40))):
        size = int(10 ** draw.uniform(0, 3.3))
        text = draw.choice(known) if draw.random() < 0.2 else " ".join(draw.choices(WORDS, k=size))
        known.append(text)
        place = folder / draw.choice(("", "deep", "deep/er")) / f"{number:02}"
        encoding = draw.choice(("utf-8", "utf-8", "utf-8-sig", "utf-16"))
        data = text.replace("\n", draw.choice(("\n", "\r\n"))).encode(encoding)
        kind = draw.choice(("txt", "md", "gz", "bz2", "xz", "jsonl", "jsonl.gz"))
        if kind.startswith("jsonl"):
            lines = [json.dumps(draw.choice((text, {"text": text, "id": number})))] * 2
            data = "\n".join([*lines, "", json.dumps("another document " * 9)]).encode()
        for suffix, compress in (
            ("gz", gzip.compress),
            ("bz2", bz2.compress),
            ("xz", lzma.compress),
        ):
            data = compress(data) if kind.endswith(suffix) else data
        place.with_suffix(f".{kind}").write_bytes(data)
    (folder / "empty.txt").write_bytes(b"")
    (folder / "blank.txt").write_bytes(b" \n\t\n")
    (folder / "picture.png").write_bytes(b"\x89PNG\0\0\1")
    (folder / ".hidden").write_text("hidden")


def tokens_of(folder: Path, tokenizer: Tokenizer, kept: Path | None, seed: int) -> TokenData:
    corpus = Corpus.at([folder])
    survey = drained(surveyed(corpus))
    places = survey.characters.copy()
    known = survey.kept.tolist()
    places[known] = cuts([survey.digest(n) for n in known], places[known].tolist(), SHARE, seed)
    events = tokenised([Surveyed(corpus, survey, places)], Encoder(tokenizer, ends=True), kept)
    return drained(events)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", ["bpe", "characters"])
def test_a_zoo_of_folders(
    kind: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small blocks and chunks, against everything in memory."""
    folder, kept = tmp_path / "zoo", tmp_path / "kept"
    kept.mkdir()
    zoo(folder, seed)
    monkeypatch.setattr(text_stream, "BLOCK", 997)
    monkeypatch.setattr(tokenising, "TOGETHER", 5003)
    monkeypatch.setattr(chunks.Chunks.__init__, "__defaults__", (1009,))
    documents = read_documents([folder])
    learned, held = held_out(documents, SHARE, seed)
    tokenizer: Any = (
        train_bpe(documents, 300, add_bos=True)
        if kind == "bpe"
        else CharacterTokenizer.from_texts(learned)
    )
    data = tokens_of(folder, tokenizer, kept, seed)
    encoder = Encoder(tokenizer, ends=True)
    for part, texts, facts in (
        (data.learned, learned, data.facts.learned), (data.held, held, data.facts.held)
    ):  # fmt: skip
        assert [part[n].tolist() for n in range(len(part))] == [encoder.document(t) for t in texts]
        assert facts.documents == len(texts) and facts.tokens == part.total
        assert facts.characters == sum(map(len, texts))
        unknown = encoder.unknown
        counted = sum(encoder.document(text).count(unknown) for text in texts) if unknown else 0
        assert facts.unknown == counted
    assert data.facts.held.characters <= SHARE * sum(map(len, documents))
    assert not set(learned) & set(held)
    opened = TokenData.open(kept)
    in_memory = tokens_of(folder, tokenizer, None, seed)
    assert opened.facts == data.facts == in_memory.facts
    assert opened.fingerprint == data.fingerprint == in_memory.fingerprint
    assert list(data.changed_sources(None)) == []


def test_pieces_for_a_vocabulary_end_with_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_stream, "BLOCK", 61)
    text = "some words and  other words\n\n of a text\n" * 20
    corpus = Corpus(texts=[text, "second"])
    one = Surveyed(corpus, drained(surveyed(corpus)), drained(surveyed(corpus)).characters)
    pieces = [piece for piece in one.texts() if piece]
    assert "".join(pieces) == text + "second" and len(pieces) > 9
    assert all(piece[0] in " \n" for piece in pieces[1:-1])
    whole, cut = train_bpe([text, "second"], 300), train_bpe(one.texts(), 300)
    assert whole.backend.to_str() == cut.backend.to_str()
    assert (one.learned, one.learned_documents) == (len(text) + 6, 2)


@pytest.mark.parametrize(
    ("lengths", "said"),
    [([4], "the end of the text"), ([4, 3, 9], "the end of each of 3 texts"),
     ([10, 0, 10, 10], "1 of 4 texts"), ([10, 0, 0, 7], "2 of 4 texts and the end of 1"),
     ([10, 10, 7], "the end of 1"), ([10, 10], "")],
)  # fmt: skip
def test_what_is_held_out_in_words(lengths: list[int], said: str) -> None:
    corpus = Corpus(texts=[f"{number} text abc"[:10] for number in range(len(lengths))])
    survey = drained(surveyed(corpus))
    assert Surveyed(corpus, survey, np.array(lengths)).held_out == said
