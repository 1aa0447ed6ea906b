"""Waiting: a line when it takes long, and none when it does not."""

from __future__ import annotations

import time

import pytest

from clearhead.cli import loading
from clearhead.cli.loading import waiting


def test_a_short_wait_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with waiting("loading …"):
        pass
    assert capsys.readouterr() == ("", "")


def test_a_long_wait_is_announced(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "PATIENCE", 0.0)
    with waiting("loading …"):
        time.sleep(0.05)
    assert capsys.readouterr() == ("", "loading …\n")


def test_errors_pass_through() -> None:
    with pytest.raises(KeyError), waiting("loading …"):
        raise KeyError
