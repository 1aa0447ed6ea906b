"""Texts and pairs from files, and what is said of files that are none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from clearhead.errors import InputError
from clearhead.training.data.corpus import python_reference, read_documents, read_text


def test_files_and_folders(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "two.txt").write_text("zwei\r\nZeilen", encoding="utf-8")
    (tmp_path / "b" / "one.md").write_text("eins", encoding="utf-8")
    (tmp_path / "b" / "picture").write_bytes(b"\x89PNG\0\0")
    (tmp_path / "b" / ".hidden").write_text("x")
    (tmp_path / "a.txt").write_text("\ufeffa", encoding="utf-8")
    read = read_documents([tmp_path / "b", tmp_path / "a.txt"])
    assert read == ["eins", "zwei\nZeilen", "a"]


def test_what_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "latin.txt").write_bytes("ä".encode("latin-1"))
    (tmp_path / "empty.txt").write_text(" \n")
    (tmp_path / "nothing").mkdir()
    for path, wanted in (
        ("latin.txt", r"not UTF-8 text \(byte 0\)"),
        ("empty.txt", "nothing to learn from"),
        ("absent.txt", "cannot be read: No such file"),
        ("nothing", "has no text file in it"),
    ):
        with pytest.raises(InputError, match=wanted):
            read_documents([tmp_path / path])


def test_the_reference_text_is_there() -> None:
    assert sum(map(len, python_reference())) > 300_000


def test_a_file_that_cannot_be_a_text(tmp_path: Path) -> None:
    """A pipe would wait forever; a file of a terabyte with nothing in it would fill the memory."""
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(InputError, match="is not an ordinary file"):
        read_documents([tmp_path / "pipe"])
    with pytest.raises(InputError, match=r"huge is not text: it holds null characters"):
        read_documents([tmp_path / "huge"])
    with pytest.raises(InputError, match=r"huge has 1,099,511,627,776 bytes; none has more than"):
        read_text(tmp_path / "huge")
    with pytest.raises(InputError, match="is not an ordinary file"):
        read_documents([Path("/dev/zero")])
