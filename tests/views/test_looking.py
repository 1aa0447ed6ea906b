"""``ch.look``, ``ch.steps``, ``ch.diff`` and what they return."""

from __future__ import annotations

import csv
import inspect
import io
import json
import re
from dataclasses import fields
from typing import Any, get_type_hints

import pytest

from clearhead.errors import InputError
from clearhead.explain.pictures import Aids
from clearhead.views.looking import diff, look, steps
from clearhead.views.shown import ShownDifference, ShownLook, ShownSteps
from tests.shared.explain_models import decoder, translator

TEXT = "the students opened their books"


@pytest.fixture(scope="module")
def shown() -> ShownLook:
    return look(decoder(), TEXT, word="their")


def test_every_format_shows_the_same_numbers(shown: ShownLook) -> None:
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


def test_the_chosen_heads_numbers_are_the_pages(shown: ShownLook) -> None:
    head = json.loads(str(shown.json()))
    assert head["head"] == shown.chosen_head
    numbers = [[round(weight, 4) for weight in row] for row in head["weights"]]
    assert numbers == [
        [round(float(weight), 4) for weight in row] for row in shown.insight.head().weights
    ]


def test_steps_of_a_look_a_model_a_trace_and_an_example(shown: ShownLook) -> None:
    table = steps(shown, "L1H2", "their")
    assert table.word == "their" and table.head == "L1H2"
    assert steps(decoder(), "L1H2", "their", text=TEXT).output == table.output
    assert steps(shown.seen, "L1H2", 3).rows == table.rows
    assert "q of “query” = [2 0 −1]" in str(steps("selfish"))
    with pytest.raises(InputError, match="no worked example 'nothing'"):
        steps("nothing")


def test_differences_of_texts_heads_and_models(shown: ShownLook) -> None:
    texts = diff(shown, look(decoder(), TEXT.replace("books", "door")))
    assert "books/door" in str(texts)
    heads = diff(shown.head("L0H1"), shown.head("L1H3"))
    assert (heads.before, heads.after) == ("L0H1", "L1H3")
    models = diff(decoder(), decoder(97), text=TEXT)
    assert len(models.heads) == 8
    with pytest.raises(InputError, match="two models are compared on a text"):
        diff(decoder(), decoder())


def test_what_cannot_be_compared_is_named(unchecked: None) -> None:
    with pytest.raises(InputError, match="diff compares looks, heads, models or traces; got int"):
        diff(1, 2)  # type: ignore[arg-type]


def test_wrong_aids_are_named(unchecked: None) -> None:
    with pytest.raises(InputError, match="pool must be one of 'max', 'mean', 'sum'; got 'min'"):
        look(decoder(), TEXT, pool="min")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="hide must be one of 'first and special', 'special'"):
        diff(decoder(), decoder(), text=TEXT, hide="all")  # type: ignore[arg-type]


def test_every_reading_aid_is_a_parameter_with_its_default() -> None:
    for function in (look, diff):
        parameters = inspect.signature(function).parameters
        for aid in fields(Aids):
            assert parameters[aid.name].default == aid.default
        assert not [one for one in parameters.values() if one.kind is one.VAR_KEYWORD]


def test_results_are_classes_that_a_type_checker_knows() -> None:
    wanted = {look: ShownLook, steps: ShownSteps, diff: ShownDifference}
    for function, result in wanted.items():
        hints = get_type_hints(function)
        assert hints["return"] is result
        assert Any not in hints.values()


def test_models_are_loaded_by_their_names() -> None:
    date = "3rd of March 2021"
    by_name = look("dates", date)
    assert by_name.name == "dates" and by_name.text == "2021-03-03"
    assert steps("dates", "C0H1", text=date).head == "C0H1"
    with pytest.raises(InputError, match="text has no use here: a worked example has its own"):
        steps("selfish", text=date)
    same = diff("dates", "dates", text=date)
    assert (same.before, same.heads[0].distance) == ("dates", 0.0)
    with pytest.raises(InputError, match="two models are compared on a text"):
        diff("dates", "dates")


def test_a_translator_shows_both_texts_and_what_was_written() -> None:
    text = str(look(translator(), "the students opened the door", generate=5))
    assert "  read     the students opened the door" in text
    assert "  written  " in text
    assert "Each written token, and the words that its query looked at" in text
    assert "cross-attention layer" in text
