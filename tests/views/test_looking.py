"""``ch.look``, ``ch.steps``, ``ch.diff`` and what they return."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from pathlib import Path

import pytest

from clearhead.errors import InputError
from clearhead.explain.pictures import WordPicture
from clearhead.views.looking import diff, look, steps
from clearhead.views.shown import Shown

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "explain"))
from explain_models import decoder, translator

TEXT = "the students opened their books"


@pytest.fixture(scope="module")
def shown() -> Shown:
    return look(decoder(), TEXT, word="their")


def test_a_look_shows_itself_as_text(shown: Shown) -> None:
    text = str(shown)
    assert repr(shown) == text
    assert text.startswith("tiny · 2 layers × 4 heads ─")
    for part in ("“their” looks most at", "Over all 8 heads", "All heads", "Proof: exact", "Why"):
        assert part in text
    assert max(map(len, text.splitlines())) <= 80


def test_what_an_insight_has_can_be_asked_and_shows_itself(shown: Shown) -> None:
    assert shown.text == TEXT
    assert shown.rows[shown.chosen_word].text == "their"
    picture = shown.word("books", head="L1H1")
    assert isinstance(picture, Shown) and isinstance(picture.insight, WordPicture)
    assert "Where “books” looks in L1H1" in str(picture)
    with pytest.raises(AttributeError, match="nonsense"):
        shown.nonsense  # noqa: B018


def test_it_is_written_by_its_ending(shown: Shown, tmp_path: Path) -> None:
    for suffix, start in (
        ("html", b"<!doctype html>"), ("svg", b"<svg"), ("png", b"\x89PNG"), ("json", b"{"),
        ("csv", b"head,row"), ("txt", b"tiny"),
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


def test_methods_give_text_or_write(shown: Shown, tmp_path: Path) -> None:
    assert str(shown.svg()).startswith("<svg")
    assert str(shown.csv()).startswith("head,row")
    assert json.loads(str(shown.json()))["head"] == shown.chosen_head
    assert isinstance(shown.png(), bytes)
    assert str(shown.html()).startswith("<!doctype html>")
    assert shown.csv(tmp_path / "a.csv") == tmp_path / "a.csv"
    assert shown.html(tmp_path / "a.html") == tmp_path / "a.html"


def test_a_page_can_be_opened(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    path = Path(str(shown.html(open=True)))
    assert opened == [path.as_uri()] and path.read_text().startswith("<!doctype html>")
    path.unlink()
    path.parent.rmdir()


def test_a_notebook_gets_text_and_html(
    shown: Shown, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = str(shown)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    bundle = shown._repr_mimebundle_()
    assert bundle["text/plain"] == text != ""  # and rich shows nothing of its own
    assert capsys.readouterr().out == ""
    assert "<iframe" in bundle["text/html"]


def test_every_format_shows_the_same_numbers(shown: Shown) -> None:
    picture = shown.word("books", head="L1H1")
    insight = picture.insight
    expected = {s.mark.text: f"{s.weight:.2f}" for s in insight.sources if s.weight >= 0.01}
    assert expected
    told = {
        row["column_word"]: float(row["strength"])
        for row in csv.DictReader(io.StringIO(str(picture.csv())))
    }
    in_json = {s["mark"]["text"]: s["weight"] for s in json.loads(str(picture.json()))["sources"]}
    drawn = re.sub(r"<[^>]+>", " ", str(picture.svg()))
    for word, number in expected.items():
        assert f"{told[word]:.2f}" == f"{in_json[word]:.2f}" == number
        assert number in drawn
        assert re.search(rf"{word} +{number}", str(picture))


def test_the_chosen_heads_numbers_are_the_pages(shown: Shown) -> None:
    head = json.loads(str(shown.json()))
    assert head["head"] == shown.chosen_head
    numbers = [[round(weight, 4) for weight in row] for row in head["weights"]]
    assert numbers == [
        [round(float(weight), 4) for weight in row] for row in shown.insight.head().weights
    ]


def test_steps_of_a_look_a_model_a_trace_and_an_example(shown: Shown) -> None:
    table = steps(shown, "L1H2", "their")
    assert table.word == "their" and table.head == "L1H2"
    assert steps(decoder(), "L1H2", "their", text=TEXT).output == table.output
    assert steps(shown.seen, "L1H2", 3).rows == table.rows
    assert "query asks with q" in str(steps("selfish"))
    with pytest.raises(InputError, match="no worked example 'nothing'"):
        steps("nothing")


def test_differences_of_texts_heads_and_models(shown: Shown) -> None:
    texts = diff(shown, look(decoder(), TEXT.replace("books", "door")))
    assert "books/door" in str(texts)
    heads = diff(shown.head("L0H1"), shown.head("L1H3"))
    assert (heads.before, heads.after) == ("L0H1", "L1H3")
    models = diff(decoder(), decoder(97), text=TEXT)
    assert len(models.heads) == 8
    with pytest.raises(InputError, match="two models are compared on a text"):
        diff(decoder(), decoder())
    with pytest.raises(InputError, match="diff compares looks, heads, models or traces; got int"):
        diff(1, 2)


def test_wrong_aids_are_named() -> None:
    with pytest.raises(InputError, match="there is no option colours; reading aids are words"):
        look(decoder(), TEXT, colours="log")
    with pytest.raises(InputError, match="pool must be one of 'max', 'mean', 'sum'; got 'min'"):
        look(decoder(), TEXT, pool="min")


def test_a_translator_shows_both_texts_and_what_was_written() -> None:
    text = str(look(translator(), "the students opened the door", generate=5))
    assert "  read     the students opened the door" in text
    assert "  written  " in text
    assert "Each written token, and what was looked at to write it" in text
    assert "cross-attention layer" in text
