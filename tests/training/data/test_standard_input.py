"""Standard input as a source."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest

from clearhead.errors import InputError
from clearhead.training.data.source import source_of
from clearhead.training.data.standard_input import copied
from clearhead.training.events import Started, Stepped
from clearhead.training.run import train

MODEL = {"model": 8, "layers": 1, "heads": 2, "feed_forward": 8, "context": 16}


def piped(data: bytes) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(data), encoding="utf-8")


def test_a_copy_for_as_long_as_it_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", piped(b"some text"))
    with copied(tmp_path) as path:
        assert path.parent == tmp_path and path.read_bytes() == b"some text"
    assert not list(tmp_path.iterdir())


def test_a_terminal_is_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = piped(b"")
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", terminal)
    with pytest.raises(InputError, match="standard input is a terminal"), copied(None):
        pass


@pytest.mark.parametrize("lines", [False, True])
def test_the_same_run_as_from_a_file(
    lines: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "the quick brown fox jumps over the lazy dog. " * 9
    path = tmp_path / ("file.jsonl" if lines else "file.txt")
    path.write_text(f'{{"body": "{text}"}}\n' if lines else text)
    monkeypatch.setattr(sys, "stdin", piped(path.read_bytes()))
    given: dict[str, Any] = {"tokenizer": "characters", "steps": 2, "model": MODEL, "device": "cpu",
             "field": "body" if lines else None}  # fmt: skip
    found = []
    for name, source in (("file", path), ("pipe", "-")):
        events = list(train(source, out=tmp_path / name, **given))
        found.append([event.loss for event in events if isinstance(event, Stepped)])
    assert found[0] == found[1]
    again = list(train(out=tmp_path / "pipe", resume=True, steps=3, device="cpu"))
    assert any(isinstance(event, Started) for event in again)


def test_standard_input_is_no_path() -> None:
    assert source_of(Path("-"), pairs=False).paths == ("-",)
    assert source_of([Path("-")], pairs=False).paths == ("-",)
