from __future__ import annotations

from dataclasses import replace

import clearhead as ch
from clearhead.views.why.text import (
    ablation_text,
    becomes,
    percent,
    place,
    prediction,
    signed,
    summary,
)
from tests.shared.explain_models import decoder
from tests.shared.explained_models import shown_why, why_of_a_date


def test_numbers_as_text() -> None:
    assert [signed(one) for one in (2.656, -1.0, 0.001, -0.001)] == [
        "+2.66",
        "−1.00",
        " 0.00",
        " 0.00",
    ]
    assert [percent(one) for one in (0.7725, 0.0125, 0.00002)] == ["77 %", "1.2 %", "< 0.01 %"]
    assert [percent(one) for one in (0.994, 0.9963, 0.99987, 0.99999, 1.0, 1.03)] == [
        "99 %", "99.63 %", "99.99 %", "> 99.99 %", "100 %", "103 %",
    ]  # fmt: skip


def test_the_summary_names_a_head_that_ablation_confirms() -> None:
    why = why_of_a_date().insight
    assert "takes" in summary(why) and "Without this head" in summary(why)
    assert shown_why().insight.effects is not None
    said = summary(why)  # of this date the digit is sure, with and without any head
    assert "stays at > 99.99 %; the difference of the logits goes from 11.64" in said
    assert said.startswith(
        "Feed-forward layers write most of it, +11.33; all heads together +0.62."
    )


def test_the_strongest_heads_are_counted_as_they_survive() -> None:
    why = shown_why().insight
    effects = why.effects
    assert effects is not None
    found = [effects.of(part.name) for part in why.heads[:10]]
    confirmed = sum(one is not None and one.survives for one in found)
    assert f"Of the 10 strongest heads, {confirmed} change the answer" in ablation_text(why)
    heads = (part for part in why.heads if (one := effects.of(part.name)) and one.survives)
    every = replace(why, heads=tuple(heads))
    assert "what the others do" not in ablation_text(every)
    assert becomes(why) == f"{percent(effects.probability)} becomes"
    assert becomes(replace(why, effects=None)) == ""


def test_a_prediction_that_is_not_at_the_end_says_where_it_stands() -> None:
    loaded = decoder()
    text = "the books and the minds"
    assert place(ch.why(loaded, text, effects=False).insight) == ""
    middle = ch.why(loaded, text, position="books", effects=False).insight
    assert prediction(middle).startswith("after “books”: “")
    second = ch.why(loaded, text, position="the#2", effects=False).insight
    assert place(second) == "after “the” (number 2 of 2): "
    filling = replace(middle, fills=True)
    assert place(filling) == "in the place of “books”: "
