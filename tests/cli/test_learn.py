"""clearhead learn: usage, files, errors."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import pytest
from click.testing import CliRunner

from clearhead.cli.learn import command
from clearhead.errors import InputError


def test_the_page_has_a_sensible_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(command, [])
    assert done.exit_code == 0 and "learn.html is written" in done.output
    assert Path("learn.html").read_text().startswith("<!doctype html>")


def test_it_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    page = tmp_path / "course.html"
    assert CliRunner().invoke(command, ["--html", str(page), "--open"]).exit_code == 0
    assert opened == [page.resolve().as_uri()]


def test_markdown_pages(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, ["--markdown", str(tmp_path / "learn")])
    assert done.exit_code == 0 and "17 pages are written" in done.output
    assert (tmp_path / "learn" / "index.md").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--html", "course.jpg"], "a page ends in .html; got course.jpg"),
        (["--html", "missing/course.html"], "there is no folder missing"),
        (["--html", "."], "ends in .html"),
        (["--markdown", "x", "--open"], "--markdown writes no page"),
    ],
)
def test_what_cannot_be_written_is_refused_first(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=said):
        CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert list(tmp_path.iterdir()) == []
