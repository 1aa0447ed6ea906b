"""What every result that shows itself can do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clearhead.errors import InputError
from clearhead.explain.pictures import WordPicture
from clearhead.views.looking import look
from clearhead.views.shown import ShownGallery, ShownLook, ShownWord
from clearhead.views.shown.base import REPR_LINES
from tests.shared.explain_models import decoder
from tests.shared.made_looks import made_look

TEXT = "the students opened their books"


@pytest.fixture(scope="module")
def shown() -> ShownLook:
    return look(decoder(), TEXT, word="their")


def test_a_look_shows_itself_as_text(shown: ShownLook) -> None:
    text = str(shown)
    assert repr(shown) == text
    assert text.startswith("tiny · 2 layers × 4 heads ─")
    for part in ("“their” looks most at", "Over all 8 heads", "All heads", "Proof: exact", "Why"):
        assert part in text
    assert max(map(len, text.splitlines())) <= 80


def test_what_an_insight_has_can_be_asked_and_shows_itself(shown: ShownLook) -> None:
    assert shown.text == TEXT
    assert shown.rows[shown.chosen_word].text == "their"
    picture = shown.word("books", head="L1H1")
    assert isinstance(picture, ShownWord) and isinstance(picture.insight, WordPicture)
    assert "Where “books” looks in L1H1" in str(picture)
    assert not hasattr(shown, "nonsense")


def test_it_is_written_by_its_ending(shown: ShownLook, tmp_path: Path) -> None:
    for suffix, start in (
        ("html", b"<!doctype html>"), ("svg", b"<svg"), ("png", b"\x89PNG"), ("json", b"{"),
        ("csv", b"what,head,row"), ("txt", b"tiny"),
    ):  # fmt: skip
        path = shown.save(tmp_path / f"look.{suffix}")
        assert path.read_bytes().startswith(start), suffix
    assert sorted(path.suffix for path in tmp_path.iterdir()) == sorted(
        [".html", ".svg", ".png", ".json", ".csv", ".txt"]
    )
    with pytest.raises(InputError, match=r"endings are \.html, \.svg, \.png"):
        shown.save(tmp_path / "look.docx")
    with pytest.raises(InputError, match="cannot be written: No such file"):
        shown.save(tmp_path / "nowhere" / "look.csv")


def test_methods_give_text_or_write(shown: ShownLook, tmp_path: Path) -> None:
    assert str(shown.svg()).startswith("<svg")
    assert str(shown.csv()).startswith("what,head,row")
    assert json.loads(str(shown.json()))["head"] == shown.chosen_head
    assert isinstance(shown.png(), bytes)
    assert str(shown.html()).startswith("<!doctype html>")
    assert shown.csv(tmp_path / "a.csv") == tmp_path / "a.csv"
    assert shown.html(tmp_path / "a.html") == tmp_path / "a.html"


def test_a_page_can_be_opened(shown: ShownLook, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    path = Path(str(shown.html(open=True)))
    assert opened == [path.as_uri()] and path.read_text().startswith("<!doctype html>")
    path.unlink()
    path.parent.rmdir()


def test_a_notebook_gets_text_and_html(
    shown: ShownLook, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = str(shown)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    bundle = shown._repr_mimebundle_()
    assert bundle["text/plain"] == text != ""  # and rich shows nothing of its own
    assert capsys.readouterr().out == ""
    assert "<iframe" in bundle["text/html"]


def test_the_repr_of_a_very_long_picture_is_cut() -> None:
    gallery = ShownGallery(made_look("one two three", layers=23).gallery())
    lines = repr(gallery).splitlines()
    assert len(lines) == REPR_LINES + 1
    left = len(str(gallery).splitlines()) - REPR_LINES
    assert lines[-1] == f"  … {left} more lines: print() shows them."
