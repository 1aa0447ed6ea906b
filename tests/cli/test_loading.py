"""Waiting: a line when it takes long, and none when it does not."""

from __future__ import annotations

import json
import re
import threading
import time
from pathlib import Path

import pytest

import clearhead as ch
from clearhead.cli import loading
from clearhead.cli.loading import load_model, measuring, waiting

LONG = 600.0  # seconds: no machine is so busy


def heard(capsys: pytest.CaptureFixture[str], wanted: str) -> str:
    """What is said on standard error, from now until it holds what is wanted."""
    said, end = "", time.monotonic() + LONG
    while not re.search(wanted, said) and time.monotonic() < end:
        time.sleep(0.01)
        said += capsys.readouterr().err
    return said


def test_a_short_wait_prints_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "PATIENCE", LONG)
    with waiting("loading …"):
        pass
    assert capsys.readouterr() == ("", "")


def test_a_long_wait_is_announced(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "PATIENCE", 0.0)
    with waiting("loading …"):
        said = heard(capsys, "\n")
    assert said + capsys.readouterr().err == "loading …\n"


def test_counted_work_has_a_bar_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "PATIENCE", -1.0)
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with measuring("patching …") as progress:
        progress(1, 2)
        progress(2, 2)
    assert "patching …" in capsys.readouterr().err


def test_counted_work_without_a_terminal_is_a_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "PATIENCE", LONG)
    with measuring("patching …") as progress:
        progress(1, 2)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(loading, "PATIENCE", 0.0)
    with measuring("patching …") as progress:
        progress(1, 2)
        said = heard(capsys, "\n")
    assert said + capsys.readouterr().err == "patching …\n"


def test_errors_pass_through() -> None:
    with pytest.raises(KeyError), waiting("loading …"):
        raise KeyError


def test_what_is_not_read_is_told_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = ch.ModelConfig(
        kind="decoder", family="llama", vocab=11, context=13, model=6, layers=1, heads=1,
        feed_forward=7, gated=True,
    )  # fmt: skip
    folder = ch.save(ch.Decoder(config), tmp_path / "tiny")
    assert load_model(str(folder)).unread == ()
    assert capsys.readouterr().err == ""
    fields = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(fields | {"colour": "red"}))
    assert load_model(str(folder)).unread == ("colour",)
    told = capsys.readouterr().err
    assert told.startswith("Warning: ") and told.count("\n") == 1
    assert "nobody here knows, 1 of them: colour." in told


def test_a_line_that_is_ended_early_says_nothing_more(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "PATIENCE", LONG)
    before = threading.enumerate()
    with waiting("loading …") as silent:
        (teller,) = set(threading.enumerate()) - set(before)
        silent()
        teller.join(LONG / 2)
        assert not teller.is_alive()
    assert capsys.readouterr().err == ""


def test_on_a_terminal_the_line_counts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "PATIENCE", 0.0)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with waiting("loading …"):
        said = heard(capsys, r"loading … \d+ s")
    assert (said + capsys.readouterr().err).endswith("\x1b[K")
    assert re.search(r"loading … \d+ s", said)
