from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import clearhead as ch
from clearhead.errors import InputError
from clearhead.explain.difference import make_difference
from clearhead.explain.worked_examples import worked_example
from clearhead.text.characters import CharacterTokenizer
from clearhead.text.words import WordTokenizer
from clearhead.views.tables import csv_text, json_text
from tests.shared.explained_models import random_decoder
from tests.shared.made_looks import SENTENCE, made_look

LETTERS = CharacterTokenizer("".join(map(chr, range(97, 97 + 26))))


def rows(insight: object) -> list[dict[str, str]]:
    return list(csv.DictReader(csv_text(insight).splitlines()))


def test_a_head_as_csv_and_json_holds_exactly_its_numbers() -> None:
    picture = made_look().head("L1H4")
    table = rows(picture)
    assert len(table) == 14 * 14
    numbers = np.array([row["weight"] for row in table], dtype=np.float64).reshape(14, 14)
    assert (numbers == picture.weights).all()
    assert table[1] == {
        "head": "L1H4", "row": "0", "row_word": "The", "column": "1", "column_word": "kids",
        "weight": "0.0", "masked": "true", "hidden": "false",
    }  # fmt: skip
    told = json.loads(json_text(picture))
    assert told["insight"] == "HeadPicture"
    assert (np.array(told["weights"]) == picture.weights).all()
    assert told["rows"][1] == {
        "text": "kids", "start": 4, "end": 8, "special": False, "tokens": [1],
    }  # fmt: skip
    assert told["aids"]["hide"] == "first and special"


def test_a_word_and_the_others() -> None:
    look = made_look()
    word = look.word("they")
    table = rows(word)
    strengths = np.array([row["strength"] for row in table], dtype=np.float64)
    assert (strengths == word.strengths).all()
    assert {row["row_word"] for row in table} == {"they"}
    assert len(rows(look.gallery())) == 18 * 14 * 14
    difference = make_difference(look, made_look(SENTENCE.replace("kids", "cats")))
    assert {row["what"] for row in rows(difference)} >= {"head", "word"}
    for insight in (word, look.gallery(), difference, look.steps("L1H4", "they")):
        assert json.loads(json_text(insight))["insight"] == type(insight).__name__


def test_a_look_has_its_head_and_its_predictions() -> None:
    look = ch.look("dates", "3rd of March 2021")
    table = rows(look.insight)
    weights = [row for row in table if row["what"] == "weight"]
    assert [row["weight"] for row in weights] == [
        row["weight"] for row in rows(look.insight.head())
    ]
    said = [row for row in table if row["what"] == "prediction"]
    assert len(said) == 12 * 5  # tokens of the text, likeliest of each; those that came are of them
    first = look.predictions().all[0]
    assert said[0] == dict.fromkeys(weights[0], "") | {
        "what": "prediction", "position": "0", "after": "⟨bos⟩", "token": "2", "rank": "1",
        "id": str(first.likeliest[0].id), "logit": str(first.likeliest[0].logit), "came": "true",
        "probability": str(first.likeliest[0].probability), "surprise_bits": str(first.surprise),
    }  # fmt: skip
    told = json.loads(json_text(look.insight))
    assert told["insight"] == "Look" and told["head"] == look.chosen_head
    assert told["predictions"]["all"][0]["came"]["text"] == "2"
    assert json.loads(json_text(made_look()))["predictions"] is None
    assert {row["what"] for row in rows(made_look())} == {"weight"}


def test_a_token_that_came_is_listed_at_its_rank() -> None:
    loaded = replace(random_decoder(), tokenizer=LETTERS)
    found = ch.look(loaded, "abcd").predictions(top=2)
    table = rows(found.insight)
    for place, one in enumerate(found.all[:-1]):
        (came,) = [row for row in table if row["position"] == str(place) and row["came"] == "true"]
        assert one.came is not None and came["rank"] == str(one.came.rank)
        assert came["token"] == "abcd"[place + 1] and float(came["surprise_bits"]) == one.surprise
    assert len([row for row in table if row["position"] == "3"]) == 2


def test_the_step_table_has_whole_vectors() -> None:
    table = rows(worked_example("selfish")[0])
    assert [row["score"] for row in table] == ["1.0", "3.0", "-2.0", "-3.0"]
    assert [table[1][f"key_{place}"] for place in range(3)] == ["1.0", "0.0", "-1.0"]
    assert float(table[1]["weighted_2"]) == -float(table[1]["weight"])


def test_spreadsheets_run_no_word_as_a_formula() -> None:
    picture = made_look("=1 @x +2 -3 plain words here").head("L1H4")
    words = {row["row_word"] for row in rows(picture)}
    assert {"'=", "'@", "'+", "'-", "plain"} <= words


def test_what_has_no_table_is_said() -> None:
    with pytest.raises(InputError, match=r"CSV holds the numbers of one of .*; int came"):
        csv_text(3)
    with pytest.raises(InputError, match=r"JSON holds the numbers .*; str came"):
        json_text("text")


class HandMade(nn.Module):
    """Attention that nobody can see, after one that is seen."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.MultiheadAttention(6, 2, batch_first=True)
        self.second = nn.Linear(6, 6)

    def forward(self, states: Tensor) -> Tensor:
        states = self.first(states, states, states)[0]
        distance = (self.second(states)[:, :, None] - states[:, None]).square().sum(-1)
        return torch.softmax(-distance, dim=-1) @ states


def test_an_incomplete_watch_is_said_in_a_last_column() -> None:
    model, text = HandMade(), "the kids saw the lions"
    with torch.no_grad(), ch.watch(model, values=True) as seen:
        model(torch.randn(1, 5, 6))
    seen.label(WordTokenizer.from_texts([text]), text)
    look = ch.look(seen)
    for shown in (look, look.map(), look.steps("L0H1", 3), ch.diff(seen, seen)):
        heading, first, second, *_ = csv.reader(io.StringIO(shown.csv()))
        assert heading[-1] == "not_watched" and second[-1] == ""
        assert "1 of 2 attention modules watched; `` computes attention by itself" in first[-1]
    assert "not_watched" not in csv_text(made_look().word("they"))
