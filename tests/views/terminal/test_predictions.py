from __future__ import annotations

import csv
import json

import clearhead as ch
from clearhead.views.terminal.predictions import shown_token
from tests.shared.svg_elements import texts


def test_one_position_in_every_format() -> None:
    found = ch.look("dates", "3rd of March 2021").predictions("2021", top=3)
    text = str(found)
    assert "What comes behind “2021”" in text and "came:" in text
    for token in found.likeliest:
        assert f"{token.probability:6.4f}" in text
        assert f"{token.probability:.4f}" in texts(found.svg())
    rows = list(csv.DictReader(found.csv().splitlines()))
    assert rows[0]["token"] == "'-" and rows[0]["came"] == "true"
    assert json.loads(found.json())["insight"] == "Prediction"
    assert "<svg" in found.html()


def test_the_lens_in_every_format() -> None:
    found = ch.look("dates", "3rd of March 2021").lens()
    text = str(found)
    assert "L0" in text and max(map(len, text.splitlines())) <= 80
    rows = list(csv.DictReader(found.csv().splitlines()))
    assert len(rows) == len(found.marks) and rows[0]["final"] == "true"
    assert json.loads(found.json())["insight"] == "Lens"
    assert "L0" in texts(found.svg())


def test_tokens_as_they_can_be_read() -> None:
    assert [shown_token(text) for text in (" Paris", "  ", "\n", "a\x1bb")] == [
        "Paris", "␣␣", "⏎", "a␛b",
    ]  # fmt: skip
