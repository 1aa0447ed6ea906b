from __future__ import annotations

from pathlib import Path

import pytest

from clearhead.errors import CheckpointError
from clearhead.text import json_file
from clearhead.text.json_file import read_json, read_text, write_json, write_text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not valid JSON"),
        (b'{"a": 1', "not valid JSON"),
        (b"<html>", "not valid JSON"),
        (b'{"a": "\xff"}', "not valid JSON"),
        (b"[1]", "should hold a JSON object, and holds a list"),
        (b"[" * 200_000, "nested too deeply"),
        (b"1" * 9999, "not valid JSON"),
    ],
)
def test_what_is_no_json_object(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=message):
        read_json(path)


def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CheckpointError, match="cannot be read"):
        read_json(tmp_path / "absent.json")
    with pytest.raises(CheckpointError, match="cannot be read"):
        read_json(tmp_path)
    huge = tmp_path / "huge.json"
    with huge.open("wb") as stream:
        stream.truncate(json_file.LARGEST_FILE + 1)
    with pytest.raises(CheckpointError, match=r"has 268,435,457 bytes"):
        read_json(huge)
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    with pytest.raises(CheckpointError, match="not UTF-8"):
        read_text(tmp_path / "latin")


def test_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "new" / "a.json"
    write_json(path, {"é": 1})
    assert read_json(path) == {"é": 1}
    assert path.stat().st_mode & 0o777 == 0o644

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space"):
        write_text(path, "half")
    assert read_json(path) == {"é": 1}
    assert [p.name for p in path.parent.iterdir()] == ["a.json"]
