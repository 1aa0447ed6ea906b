from __future__ import annotations

import os
from pathlib import Path

import pytest

from clearhead.files.atomic_write import atomic_write, discard_unfinished, temporary_path


def test_the_new_file_replaces_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with atomic_write(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_an_error_leaves_the_old_file_only(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(error), atomic_write(path) as temporary:
        temporary.write_text("half of the n")
        raise error
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_permissions_follow_the_umask_whatever_the_writer_does(
    tmp_path: Path, umask: int, mode: int
) -> None:
    path = tmp_path / "file"
    before = os.umask(umask)
    try:
        with atomic_write(path) as temporary:
            temporary.unlink()
            temporary.write_text("new")
            temporary.chmod(0o600)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == mode


def test_the_file_is_on_the_disk_before_the_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    seen: list[bool] = []
    monkeypatch.setattr(os, "fsync", lambda _: seen.append(path.exists()))
    with atomic_write(path) as temporary:
        temporary.write_text("new")
    assert seen == [False, True]  # the file itself, then the folder with its new name


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="device or a pipe"), atomic_write(pipe):
        raise AssertionError("nothing may be written")
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


def test_temporary_names_differ_and_are_hidden(tmp_path: Path) -> None:
    first, second = temporary_path(tmp_path / "a"), temporary_path(tmp_path / "a", "old")
    assert first != second
    assert first.parent == tmp_path
    assert first.name.startswith(".a.")
    assert (first.suffix, second.suffix) == (".part", ".old")


def test_a_process_that_ends_at_once_leaves_no_temporary_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), atomic_write(tmp_path / "file") as temporary:
        temporary.write_text("half")
        discard_unfinished()
        assert list(tmp_path.iterdir()) == []
    discard_unfinished()  # nothing is left to do
