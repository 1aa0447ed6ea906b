from __future__ import annotations

import os
from pathlib import Path

import pytest

from clearhead.errors import CheckpointError
from clearhead.files.json_file import parse_json, read_json, read_json_array, write_json


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b'{"a": 1', "not valid JSON"),
        (b"<html>", "not valid JSON"),
        (b'{"a": "\xff"}', "not valid JSON"),
        (b"[1]", "should hold a JSON object, and holds a list"),
        (b"[" * 200_000, "nested too deeply"),
        (b"1" * 9999, "not valid JSON"),
        (b'{"a": "\\ud800"}', "half a character"),
        (b'{"a": ["\\uDC80x"]}', "half a character"),
        (b'{"\\ud83d": 1}', "half a character"),
        (b'{"a": {"b": 1, "c": 2, "b": 3}}', "not valid JSON: it lists 'b' twice"),
    ],
)
def test_what_is_no_json_object(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=message) as caught:
        read_json(path)
    assert str(path) in caught.value.message


def test_an_array_where_one_is_wanted(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_json(path, [2, 3])
    assert read_json_array(path) == [2, 3]
    write_json(path, {})
    with pytest.raises(CheckpointError, match="should hold a JSON array, and holds a dict"):
        read_json_array(path)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"a JSON file, but .* cannot be read: No such"):
        read_json(tmp_path / "absent.json")
    with pytest.raises(CheckpointError, match="is a folder"):
        read_json(tmp_path)
    path = tmp_path / "a.json"
    path.write_bytes(b'{"a": 1}')
    with pytest.raises(CheckpointError, match=r"wanted a map file, but .* has 8 bytes; none .* 7"):
        read_json(path, wanted="map", largest=7)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.json")
    with pytest.raises(CheckpointError, match="not an ordinary file"):
        read_json(tmp_path / "a.json")


def test_both_halves_of_a_character_are_one() -> None:
    assert parse_json(b'["\\ud83d\\ude00"]') == ["😀"]


def test_parsing_raises_only_value_errors() -> None:
    assert parse_json(b'{"\xc3\xa9": [1, {"a": null}]}') == {"é": [1, {"a": None}]}
    for bad in (b"\xff", "", "[" * 100_000, '{"a": 1, "a": 1}'):
        with pytest.raises(ValueError, match=r".") as caught:
            parse_json(bad)
        assert not isinstance(caught.value, CheckpointError)


def test_written_as_readable_utf8(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.json"
    write_json(path, {"é": 1})
    assert path.read_bytes() == '{\n  "é": 1\n}\n'.encode()
    assert read_json(path) == {"é": 1}


def test_a_large_file_only_where_one_is_expected(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"a": "' + "x" * 4 * 2**20 + '"}')
    with pytest.raises(CheckpointError, match=r"has 4,194,313 bytes; none has more than 4,194,304"):
        read_json(path)
    assert len(read_json(path, largest=2**23)["a"]) == 4 * 2**20
