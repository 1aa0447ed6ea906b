from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace

import clearhead as ch
from clearhead.text.characters import CharacterTokenizer
from clearhead.views.terminal.predictions import shown_token
from tests.shared.svg_elements import texts
from tests.shared.tiny_models import Tiny


def test_one_position_in_every_format() -> None:
    found = ch.look("dates", "3rd of March 2021").predictions("2021", top=3)
    text = str(found)
    assert "What comes after “2021”" in text and "came:" in text
    for token in found.likeliest:
        share = f"{token.probability:{'.4f' if token.probability >= 1e-4 else '.0e'}}"
        assert f"  {share}" in text and share in texts(found.svg())
    rows = list(csv.DictReader(found.csv().splitlines()))
    assert rows[0]["token"] == "'-" and rows[0]["came"] == "true"
    assert json.loads(found.json())["insight"] == "Prediction"
    assert "<svg" in found.html()


def test_every_position_in_every_format() -> None:
    found = ch.look("dates", "3rd of March 2021").predictions(top=3)
    lines = str(found).splitlines()
    assert lines[0].startswith("  What the model says next: 0.00 bits a token")
    assert max(map(len, lines)) <= 80 and len(lines) == len(found.all) + 3
    one = found.all[3]
    assert one.came is not None
    assert lines[5].split()[:4] == ["2", "1", f"{one.came.probability:.4f}", "1"]
    drawn = texts(found.svg())
    assert f"{one.came.probability:.4f}" in drawn and lines[0].strip() in drawn
    assert json.loads(found.json())["insight"] == "Predictions"
    assert found.png().startswith(b"\x89PNG") and "<svg" in found.html()


def test_a_masked_language_model_says_what_fits(tiny: Callable[[str], Tiny]) -> None:
    letters = CharacterTokenizer("".join(map(chr, range(33, 33 + 90))))
    look = ch.look(replace(tiny("bert-masked").loaded, tokenizer=letters), "abc")
    lines = str(look.predictions()).splitlines()
    assert lines[0].startswith("  What the model says at each token: ")
    assert "came" not in lines[1] and lines[3].split()[0] == "b"
    assert str(look.predictions(0)).startswith("  What fits at “abc”")
    assert "token" in texts(look.predictions().svg())


def test_the_lens_in_every_format() -> None:
    found = ch.look("dates", "3rd of March 2021").lens()
    text = str(found)
    assert "L0" in text and max(map(len, text.splitlines())) <= 80
    share = found.insight.probabilities[0, 1]
    assert f"{found.tokens[0][1]:8} {share:.2f}".replace(" 1.00", " 1.0*") in text
    assert text.count("    from ") == text.count("    first ") == 2  # bands of words
    rows = list(csv.DictReader(found.csv().splitlines()))
    assert len(rows) == len(found.marks) and rows[0]["final"] == "true"
    assert json.loads(found.json())["insight"] == "Lens"
    assert "L0" in texts(found.svg())


def test_tokens_as_they_can_be_read() -> None:
    assert [shown_token(text) for text in (" Paris", "  ", "\n", "a\x1bb")] == [
        "Paris", "␣␣", "⏎", "a␛b",
    ]  # fmt: skip
