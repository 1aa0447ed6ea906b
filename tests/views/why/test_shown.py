"""``ch.why`` in every format: terminal, SVG, page, CSV and JSON have the numbers of the sum."""

from __future__ import annotations

import csv
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

import clearhead as ch
from clearhead.views.why.shown import ShownWhy
from clearhead.views.why.text import percent, signed
from tests.explain.why.test_make_why import random_decoder
from tests.shared.chromium import page_at
from tests.shared.svg_elements import texts
from tests.shared.tiny_models import token_ids

pytestmark = pytest.mark.usefixtures("one_thread")


@cache
def shown() -> ShownWhy:
    return ch.why(random_decoder(), token_ids(7).tolist(), 13, 29)


@cache
def date() -> ShownWhy:
    return ch.why("dates", "2021-", source="3rd of March 2021")


def test_the_terminal_shows_words_heads_sum_and_proof() -> None:
    text = str(shown())
    assert max(map(len, text.splitlines())) <= 80
    assert "Why “#13” and not “#29”?" in text
    for part in shown().heads[:8]:
        assert re.search(rf"{part.name} +{re.escape(signed(part.value))} ", text)
    assert f"sum                     {signed(shown().total):>6}".split() == [
        "sum", signed(shown().total).strip(),
    ]  # fmt: skip
    assert "exact, to" in text and "Ablated one by one" in text
    assert text == str(shown()) and repr(shown()).startswith(text.splitlines()[0])


@pytest.mark.parametrize("width", [40, 60, 80, 132])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    from clearhead.views.terminal.render import plain_text

    lines = plain_text(shown().insight, width).splitlines()
    assert max(map(len, lines)) <= width


def test_the_table_adds_up() -> None:
    rows = list(csv.DictReader(shown().csv().splitlines()))
    heads = {row["name"]: float(row["value"]) for row in rows if row["part"] == "head"}
    for name, value in heads.items():
        edges = [row for row in rows if row["part"] == "edge" and row["name"] == name]
        assert sum(float(row["value"]) for row in edges) == pytest.approx(value, abs=1e-9)
    rest = [row for row in rows if row["part"] in ("feed-forward", "embedding", "bias")]
    (total,) = [float(row["value"]) for row in rows if row["part"] == "sum"]
    added = sum(heads.values()) + sum(float(row["value"]) for row in rest)
    assert added == pytest.approx(total, abs=1e-9)
    assert total == pytest.approx(shown().total)


def test_json_holds_everything() -> None:
    told = json.loads(shown().json())
    assert told["insight"] == "Why"
    assert told["total"] == pytest.approx(shown().total, abs=1e-9)
    assert len(told["heads"]) == 18 and len(told["effects"]["all"]) == 21
    assert told["proof"]["measured"] == pytest.approx(shown().proof.measured, abs=1e-9)


def test_the_picture_has_the_same_numbers() -> None:
    drawn = texts(shown().svg())
    for part in shown().heads[:8]:
        assert part.name in drawn and signed(part.value) in drawn
    assert signed(shown().total) in drawn
    assert shown().png()[:8] == b"\x89PNG\r\n\x1a\n"


@pytest.mark.browser
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (400, True)])
def test_a_head_opens_by_a_click_in_the_map(tmp_path: Path, width: int, dark: bool) -> None:
    strongest = shown().heads[0]
    with page_at(tmp_path, shown().html(), width=width, dark=dark) as page:
        assert page.locator("h1").inner_text().startswith("Why “#13” and not “#29”?")
        cell = page.locator(f'nav a[href="#why-{strongest.name}"]')
        assert cell.get_attribute("aria-label") == f"{strongest.name}: {signed(strongest.value)}"
        cell.click()
        rows = page.locator(f"#why-{strongest.name} table tr")
        first = rows.nth(1).inner_text().split()
        source = strongest.sources[0]
        weight = source.weight
        assert weight is not None
        assert first == [source.mark.text, f"{weight:.4f}", signed(source.value, 4).strip()]
        numbers = [one.inner_text() for one in page.locator(".word small").all()]
        values = {one.column: one.value for one in shown().sources}
        assert [one.strip() for one in numbers] == [
            signed(values[column]).strip() for column in range(7)
        ]
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.browser
def test_the_page_of_an_encoder_decoder_shows_both_texts(tmp_path: Path) -> None:
    with page_at(tmp_path, date().html()) as page:
        assert page.locator(".sentence").count() == 2
        assert "March" in page.locator(".sentence").first.inner_text()


def test_hostile_texts_are_escaped(tmp_path: Path) -> None:
    from dataclasses import replace

    from clearhead.text.characters import CharacterTokenizer

    loaded = random_decoder(vocab=16)
    hostile = "<b>&\"'\x1b[31m</b>"
    tokenizer = CharacterTokenizer("".join(sorted(set(hostile))))
    found = ch.why(replace(loaded, tokenizer=tokenizer), hostile)
    assert "<b>" not in found.html() and "<b>" not in found.svg()
    for written in (str(found), found.html(), found.svg(), found.csv()):
        assert "\x1b" not in written
    assert "\x1b" not in found.json()


def test_a_notebook_shows_the_page_in_a_frame() -> None:
    bundle = shown()._repr_mimebundle_()
    assert "<iframe" in bundle["text/html"] and "data:image/svg+xml" in bundle["text/html"]
    assert bundle["text/plain"] == str(shown())


def test_numbers_as_text() -> None:
    assert [signed(one) for one in (2.656, -1.0, 0.001, -0.001)] == [
        "+2.66",
        "−1.00",
        " 0.00",
        " 0.00",
    ]
    assert [percent(one) for one in (0.7725, 0.0125, 0.00002)] == ["77 %", "1.2 %", "< 0.01 %"]


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((5, "a"), r"why wants a model of ch\.load"),
        ((None, "a"), r"why wants a model"),
        (("dates", 5), r"text is a text or a list of token ids; got int"),
        (("dates", b"a"), r"got bytes"),
        (("dates", "2021"), r"why wants the source"),
    ],
)
def test_bad_arguments_are_explained(arguments: Any, message: str) -> None:
    with pytest.raises(ch.ClearheadError, match=message):
        ch.why(*arguments)


def test_a_head_by_its_name() -> None:
    assert date().head("C0H1").sources[0].mark.text == "March"
    with pytest.raises(ch.ClearheadError, match="'L7H7' is no head of this model"):
        date().head("L7H7")


@pytest.mark.download
def test_france_makes_paris() -> None:
    torch.set_num_threads(2)
    why = ch.why("smollm2", "The capital of France is", " Paris", " London")
    assert why.total == pytest.approx(4.126, abs=0.002) and why.proof.exact
    assert repr(why.heads[0]) == "L23H4 +2.66, looking 0.90 at 'France'"
    assert why.sources[0].mark.text == "France"
    assert why.effects is not None
    effect = why.effects.of("L23H4")
    assert effect is not None and effect.survives and effect.probability < 0.2
