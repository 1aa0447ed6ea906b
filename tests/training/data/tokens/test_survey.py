"""The survey of a corpus: lengths and copies, whatever the blocks are."""

from __future__ import annotations

from pathlib import Path

import pytest

from clearhead.training.data import text_stream
from clearhead.training.data.corpus import Corpus
from clearhead.training.data.tokens import survey
from clearhead.training.data.tokens.survey import drained, surveyed
from clearhead.training.events import Read

TEXTS = ["ä text of one\nfile", " \n\t", "another", "ä text of one\nfile", "end"]


@pytest.mark.parametrize("block", [4, 7, 1 << 20])
def test_lengths_copies_and_blanks(
    block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_stream, "BLOCK", block)
    for number, text in enumerate(TEXTS):
        (tmp_path / f"{number}.txt").write_text(text)
    for corpus in (Corpus.at([tmp_path]), Corpus(texts=TEXTS)):
        found = drained(surveyed(corpus))
        assert found.characters.tolist() == [len(text) for text in TEXTS]
        assert found.sizes.tolist() == [len(text.encode()) for text in TEXTS]
        assert found.blank.tolist() == [False, True, False, False, False]
        assert found.kept.tolist() == [0, 2, 3, 4]
        digests = [found.digest(n) for n in range(5)]
        assert digests[0] == digests[3] and len(set(digests)) == 4
        assert len(found.files) == len(corpus.files)


def test_progress_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_stream, "BLOCK", 10)
    monkeypatch.setattr(survey, "EVERY", 25)
    events = list(surveyed(Corpus(texts=["x" * 100])))
    assert events == [Read("surveying", done, 100) for done in (30, 60, 90)]
