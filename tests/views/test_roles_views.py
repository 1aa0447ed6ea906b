"""Pictures of roles: the same numbers everywhere, nothing from outside unescaped, no network."""

from __future__ import annotations

import csv
import io
import json
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest

from clearhead.errors import InputError
from clearhead.explain.roles.built_in_text import made_sentences
from clearhead.explain.roles.planted import PLANTED, planted_model
from clearhead.explain.roles.properties import Property
from clearhead.views.roles_shown import ShownRoles, roles
from clearhead.views.roles_text import cells, example_pieces, percent

HOSTILE = '</script><b>&"]]>'


@cache
def shown() -> ShownRoles:
    sentences = list(made_sentences(113))
    return roles(planted_model(sentences), sentences, interventions=1)


def test_every_format_has_the_same_roles() -> None:
    told = json.loads(str(shown().json()))
    by_json = {head["head"]: role["property"] for head in told["heads"] for role in head["roles"]}
    rows = list(csv.DictReader(io.StringIO(str(shown().csv()))))
    by_csv = {row["head"]: row["property"] for row in rows if row["kind"]}
    assert by_json == by_csv
    assert set(by_json.items()) <= set(PLANTED.items()) and len(by_json) >= 4
    assert {row["head"] for row in rows} == {f"L{n}H{m}" for n in range(2) for m in range(6)}
    text, page, picture = str(shown()), str(shown().html()), str(shown().svg())
    for role in shown().named:
        right = percent(role.confirmed.accuracy)
        for place in (text, page, picture):
            assert role.head in place and role.property in place and right in place


def test_the_terminal_fits_eighty_columns() -> None:
    lines = str(shown()).splitlines()
    assert max(map(len, lines)) <= 80
    assert any("right  95 % interval  for free  cases  weight" in line for line in lines)
    assert "Attention shows where a head looks" in str(shown())


def test_one_head_shows_its_examples_in_their_sentences() -> None:
    text = str(shown().head("L0H0"))
    assert "L0H0: previous token" in text and " 1.00] «" in text
    assert "L1H5: no role found" in str(shown().head("L1H5"))
    with pytest.raises(InputError, match=r"L9H0: no such head was counted; they are L0H0 … L1H5"):
        shown().head("L9H0")


def test_pieces_of_an_example_are_its_sentence() -> None:
    for examples in shown().examples.values():
        for example in examples:
            pieces = [text for text, _ in example_pieces(example)]
            bare = "".join(pieces)
            for key in example.keys:
                bare = bare.replace(f" {key.weight:.2f}]", "")
            for mark in "[]«»":
                bare = bare.replace(mark, "")
            assert bare == example.text


def test_the_picture_has_a_cell_for_every_head() -> None:
    rows = cells(shown().insight)
    assert [len(row) for row in rows] == [6, 6]
    assert [cell.sign for cell in rows[1]][1:] == [" "] * 5
    root = ElementTree.fromstring(str(shown().svg()))
    assert root.tag.endswith("svg")
    boxes = [one for one in root.iter() if one.tag.endswith("rect") and one.get("rx") == "4"]
    assert len(boxes) == 12


def test_files_are_written_by_their_ending(tmp_path: Path) -> None:
    for ending in ("html", "svg", "csv", "json", "txt"):
        assert shown().save(tmp_path / f"roles.{ending}").stat().st_size > 500
    assert (tmp_path / "roles.txt").read_text() == str(shown()) + "\n"
    with pytest.raises(InputError, match="does not say what to write"):
        shown().save(tmp_path / "roles.doc")
    with pytest.raises(InputError, match="cannot be written"):
        shown().save(tmp_path / "no" / "roles.csv")


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


def test_names_from_outside_are_escaped_and_nothing_is_fetched() -> None:
    sentences = list(made_sentences(67))
    model = replace(planted_model(sentences), name=HOSTILE)
    previous = Property(
        HOSTILE, lambda s: {q: (q - 1,) for q in range(1, len(s.tokens))}, "tokens", "position"
    )
    found = roles(model, sentences, properties=[previous], interventions=0)
    assert [role.property for role in found.named] == [HOSTILE]
    page, picture = str(found.html()), str(found.svg())
    assert "<b>&" not in page.replace("<b>L", "") and "</script>" not in page
    ElementTree.fromstring(picture)
    tags = Tags()
    tags.feed(page)
    assert not [tag for tag, _ in tags.seen if tag in ("script", "link", "img", "iframe")]
    links = [attrs["href"] for tag, attrs in tags.seen if tag == "a"]
    ids = [attrs["id"] for _, attrs in tags.seen if "id" in attrs]
    assert len(ids) == len(set(ids)) and {f"#{name}" for name in ids} == set(links)
    assert set(links) == {"#map", "#role-L0H0"}
    assert "url(" not in page and "http" not in page.replace("http-equiv", "")


def test_a_notebook_shows_the_page_in_a_frame_of_its_own() -> None:
    bundle = shown()._repr_mimebundle_()
    assert bundle["text/plain"] == str(shown())
    tags = Tags()
    tags.feed(bundle["text/html"])
    frame = dict(tags.seen)["iframe"]
    base = '<base href="about:srcdoc">'  # links stay in the frame
    page = frame["srcdoc"]
    assert page is not None and base in page and page.replace(base, "") == shown().html()
    assert "sandbox" in frame and "<svg" not in bundle["text/html"].replace("&lt;svg", "")
    picture = dict(tags.seen)["img"]["src"]  # for notebooks that are not trusted
    assert picture is not None and picture.startswith("data:image/svg+xml;base64,")
    assert shown().head("L0H0")._repr_mimebundle_() == {"text/plain": str(shown().head("L0H0"))}


def test_the_page_can_be_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    written = shown().html(open=True)
    assert isinstance(written, Path) and opened == [written.resolve().as_uri()]
    assert written.read_text("utf-8") == shown().html()


def test_a_head_is_told_in_words_only() -> None:
    with pytest.raises(InputError, match=r"SVG shows one of .*Roles; HeadEvidence came"):
        shown().head("L0H0").svg()


def test_formulas_stay_text_in_spreadsheets() -> None:
    sentences = list(made_sentences(67))
    previous = Property(
        "=1+1", lambda s: {q: (q - 1,) for q in range(1, len(s.tokens))}, "tokens", "position"
    )
    found = roles(planted_model(sentences), sentences, properties=[previous], interventions=0)
    assert "L0H0,'=1+1,position," in str(found.csv())
