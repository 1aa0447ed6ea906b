"""Numbers of real models in the course."""

from __future__ import annotations

import numpy as np
import pytest

from clearhead.explain.course.packed import unpacked
from clearhead.views.course.chapters import CHAPTERS
from clearhead.views.course.real_numbers import real_numbers

NAMES = [chapter.figure.numbers for chapter in CHAPTERS if chapter.figure.numbers]


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_finds_its_numbers(name: str) -> None:
    assert real_numbers(name)


def test_the_first_logits_are_the_largest() -> None:
    found = real_numbers("next_token")
    logits = np.sort(unpacked(found["logits"]))[::-1]
    assert found["first"] == logits[: len(found["first"])].astype(float).tolist()


def test_the_pronoun_s_weights_follow_from_q_and_k() -> None:
    for one in real_numbers("pronoun")["sentences"]:
        keys = unpacked(one["keys"]).astype(float).reshape(-1, one["width"])
        scores = keys @ unpacked(one["query"]).astype(float) * one["scale"]
        weights = np.exp(scores - scores.max())
        assert np.allclose(weights / weights.sum(), one["weights"], atol=1e-6)


def test_what_the_chapters_say_is_what_was_measured() -> None:
    """The figures that the texts of chapters 12, 13 and 15 quote."""
    rows = real_numbers("recurrence")["rows"]
    trains = [row["training"]["recurrence"] / row["training"]["attention"] for row in rows]
    writes = [row["generation"]["attention"] / row["generation"]["recurrence"] for row in rows]
    assert 1.4 < min(trains) < 1.6 and 6.5 < max(trains) < 7.5
    assert min(writes) > 2.0 and max(writes) < 6.0
    recall = {row["tokens"]: row for row in real_numbers("recurrence")["recall"]}
    assert max(recall[32]["recurrence"]) < 0.1 and min(recall[128]["attention"]) == 1.0
    verbs = next(r for r in real_numbers("evidence")["roles"] if r["property"] == "every VERB")
    assert (verbs["head"], verbs["hits"], verbs["cases"]) == ("L13H4", 571, 1496)
    paris = real_numbers("prediction")
    first = paris["heads"][0]
    assert first["head"] == "L23H4" and round(paris["total"] - first["effect"], 2) == 0.28
    assert round(paris["total"] - first["part"], 2) == 1.47
