"""Texts, files and traces that commands take, and their display options."""

from __future__ import annotations

from pathlib import Path

import pytest

from clearhead.cli.looking_options import (
    aids_of,
    is_file,
    opened,
    program,
    repeated,
    text_of,
    try_next,
)
from clearhead.errors import InputError


def test_a_text_or_the_content_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("in the file\n")
    assert text_of(str(path)) == "in the file"
    assert text_of("just a text.") == "just a text."
    assert text_of("x" * 999) == "x" * 999
    with pytest.raises(InputError, match="does not exist; wanted: a text"):
        text_of(str(tmp_path / "none.txt"))
    with pytest.raises(InputError, match="is a folder; wanted: a text"):
        text_of(f"{tmp_path}/")


def test_what_is_no_file(tmp_path: Path) -> None:
    assert not any(map(is_file, ("", "a\nb", "\0", "x" * 999, str(tmp_path))))
    path = tmp_path / "text.txt"
    path.write_text("no trace")
    assert is_file(str(path)) and opened(str(path)) is None


def test_display_options_as_look_takes_them() -> None:
    options = {"tokens": True, "hide": "nothing", "colour": "log", "pool": "sum"}
    found = aids_of(options | {"measure": "value"})
    assert found == {
        "words": False, "hide": "nothing", "colour": "log", "pool": "sum", "measure": "weight·‖v‖"
    }  # fmt: skip


def test_suggestions(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["/usr/bin/clearhead"])
    assert program() == "clearhead"
    try_next("look x", "steps")
    assert capsys.readouterr().out == "Try next:\n  clearhead look x\n  clearhead steps\n"


def test_texts_that_can_be_pasted() -> None:
    assert repeated("two words", "") == "'two words'"
    assert repeated("-", "two words") == "'two words'"
    for text in ("- a list", "--- title", "-1"):  # options, to whoever reads the command
        assert repeated(text, text) is None
        assert repeated("-", text) is None
