from __future__ import annotations

import os
from pathlib import Path

import pytest

from clearhead.errors import CheckpointError
from clearhead.files.regular_file import LARGEST_TEXT
from clearhead.files.text_file import read_text, write_text


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
