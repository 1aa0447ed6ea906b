from __future__ import annotations

from pathlib import Path

import pytest

from clearhead.errors import InputError
from clearhead.explain.roles.corpus.plain_text import read_text, sentences_in


def test_plain_text_is_cut_into_sentences() -> None:
    lines = ["Dr. Novak left. He took", "the bus! (It was late.) Then", "", "A new paragraph"]
    assert list(sentences_in(lines)) == [
        "Dr. Novak left.", "He took the bus!", "(It was late.)", "Then", "A new paragraph",
    ]  # fmt: skip


def test_a_sentence_without_end_comes_in_parts() -> None:
    assert [len(part) for part in sentences_in(["a" * 25_000])] == [10_000, 10_000, 5_000]
    parts = list(sentences_in(["Dr. " * 20_000]))
    assert max(map(len, parts)) == 10_000 and len("".join(parts)) == 79_999


def test_files_are_read_line_by_line(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("\ufeffOne.\r\n\r\nTwo (2.) It is.".encode())
    assert list(read_text(tmp_path / "a.txt")) == ["One.", "Two (2.)", "It is."]
    (tmp_path / "b.txt").write_bytes(b"caf\xe9")
    with pytest.raises(InputError, match="is not UTF-8"):
        list(read_text(tmp_path / "b.txt"))
