from __future__ import annotations

from pathlib import Path

import pytest

from clearhead.checkpoints.aside import written_aside


def test_the_new_file_replaces_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with written_aside(path) as aside:
        aside.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_an_error_leaves_the_old_file_only(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(error), written_aside(path) as aside:
        aside.write_text("half of the n")
        raise error
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
