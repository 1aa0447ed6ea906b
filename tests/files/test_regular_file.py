from __future__ import annotations

import os
from pathlib import Path

import pytest

from clearhead.errors import CheckpointError, InputError
from clearhead.files.regular_file import (
    open_regular_file,
    read_regular_file,
    reason,
    regular_file_size,
)


def test_the_size_and_the_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"seven b")
    assert regular_file_size(path, "test") == 7
    assert read_regular_file(path, "test", largest=7) == b"seven b"
    with pytest.raises(CheckpointError, match=r"has 7 bytes; none has more than 6"):
        read_regular_file(path, "test", largest=6)


def test_an_empty_file_only_where_it_may_be_empty(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.touch()
    with pytest.raises(CheckpointError, match=r"wanted a test file, but .*a is empty"):
        regular_file_size(path, "test")
    assert regular_file_size(path, "test", may_be_empty=True) == 0
    assert read_regular_file(path, "test", may_be_empty=True) == b""


def test_paths_that_are_no_ordinary_file(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="cannot be read: No such file"):
        regular_file_size(tmp_path / "absent", "test")
    with pytest.raises(CheckpointError, match="null"):
        regular_file_size(Path("a\0b"), "test")
    with pytest.raises(CheckpointError, match="is a folder"):
        regular_file_size(tmp_path, "test")
    with pytest.raises(CheckpointError, match="not an ordinary file"):
        regular_file_size(Path(os.devnull), "test")


def test_a_file_of_somebody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.write_text("secret")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(CheckpointError, match="may not be read by this user"):
        regular_file_size(path, "test")


def test_the_reason_without_path_and_number() -> None:
    assert reason(OSError(28, "No space left on device", "a")) == "No space left on device"
    assert reason(ValueError("embedded null byte")) == "embedded null byte"


def test_an_open_file_and_errors_of_reading_it(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    with open_regular_file(path, "test") as file:
        assert file.read() == b"abc"
    with (
        pytest.raises(InputError, match=r"a test file, but .*a cannot be read: Input/output error"),
        open_regular_file(path, "test", error_kind=InputError),
    ):
        raise OSError(5, "Input/output error")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_path_that_becomes_a_pipe_after_it_was_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "a")
    monkeypatch.setattr("clearhead.files.regular_file.regular_file_size", lambda *_, **__: 3)
    with (
        pytest.raises(CheckpointError, match="is not an ordinary file"),
        open_regular_file(tmp_path / "a", "test"),
    ):
        pass


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="no such files here")
def test_a_file_that_does_not_know_its_size() -> None:
    maps = Path("/proc/self/maps")
    assert len(read_regular_file(maps, "test", may_be_empty=True)) > 1000
    with pytest.raises(CheckpointError, match="none has more than 50"):
        read_regular_file(maps, "test", may_be_empty=True, largest=50)
