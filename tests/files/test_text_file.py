from __future__ import annotations

import os
from pathlib import Path

import pytest

from clearhead.errors import CheckpointError, InputError
from clearhead.files.regular_file import LARGEST_TEXT
from clearhead.files.text_file import LONGEST_PART, read_text, text_lines, write_text


def test_text_comes_back_with_its_line_breaks(tmp_path: Path) -> None:
    path = tmp_path / "several" / "folders" / "a.txt"
    for text in ("", "é\n", "two\r\nlines\n"):
        write_text(path, text)
        assert path.read_bytes() == text.encode("utf-8")
        assert read_text(path) == text


def test_what_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "latin"
    path.write_bytes(b"caf\xe9")
    with pytest.raises(CheckpointError, match=r"latin is not UTF-8 text"):
        read_text(path)
    with path.open("wb") as stream:
        stream.truncate(LARGEST_TEXT + 1)
    with pytest.raises(CheckpointError, match=r"has 268,435,457 bytes; none has more than"):
        read_text(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CheckpointError, match="not an ordinary file"):
        read_text(tmp_path / "pipe")


def test_a_full_disk_leaves_the_old_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_text(path, "half")
    assert read_text(path) == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_lines_without_the_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffé\r\nzwei\n\nend".encode())
    assert list(text_lines(path)) == ["é\n", "zwei\n", "\n", "end"]
    path.write_bytes(b"")
    assert list(text_lines(path)) == []


def test_a_line_without_end_comes_in_parts(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("a" * (LONGEST_PART + 3) + "\nb\n")
    assert [len(part) for part in text_lines(path)] == [LONGEST_PART, 4, 2]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"one\ncaf\xe9\n", r"is not UTF-8 \(near line"),
        (b"one\ntwo\0\n", "is not text: line 2 holds a null character"),
    ],
)
def test_lines_of_what_is_no_text(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        list(text_lines(path, error_kind=InputError))


def test_lines_of_a_folder_a_pipe_and_of_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "absent", Path(os.devnull)):
        with pytest.raises(CheckpointError, match="wanted a text file, but"):
            list(text_lines(path))
