from __future__ import annotations

import math

import numpy as np
import pytest

from clearhead.explain.pictures import Mark
from clearhead.explain.why.parts import (
    Effect,
    HeadPart,
    HeadSources,
    SourcePart,
    WhyProof,
    sink_weight,
    spearman,
)
from tests.shared.explained_models import shown_why, why_of_a_date


def test_rank_correlation_by_hand() -> None:
    assert spearman([1.0, 2.0, 3.0], [10.0, 20.0, 30.0]) == pytest.approx(1)
    assert spearman([1.0, 2.0, 3.0], [3.0, 2.0, 1.0]) == pytest.approx(-1)
    assert spearman([1.0, 2.0, 2.0, 4.0], [1.0, 2.0, 3.0, 4.0]) == pytest.approx(0.9486833)
    assert math.isnan(spearman([1.0, 2.0], [1.0, 2.0]))  # too few


def test_ablation_confirms_a_part_of_the_same_sign_and_size() -> None:
    assert Effect("L0H0", 2.0, 0.5, 0.1).survives
    assert not Effect("L0H0", 2.0, 0.4, 0.1).survives
    assert not Effect("L0H0", 2.0, -3.0, 0.1).survives
    assert Effect("L0H0", -2.0, -3.0, 0.1).survives


def test_a_proof_needs_both_checks() -> None:
    assert WhyProof(1.0, 1.0, 1e-6, 1e-6).exact
    assert not WhyProof(1.0, 1.1, 1e-3, 1e-6).exact
    assert not WhyProof(1.0, 1.0, 1e-6, 1e-3).exact


def test_all_heads_as_a_grid() -> None:
    why = shown_why().insight
    names, grid = why.grid()
    assert names == ("L0", "L1", "L2") and grid.shape == (3, 6)
    for part in why.heads:
        layer, head = int(part.name[1]), int(part.name[3])
        assert grid[layer, head] == part.value
    names, grid = why_of_a_date().insight.grid()
    assert names == ("L0", "C0") and not np.isnan(grid).any()


def test_what_a_total_is_in_words() -> None:
    assert shown_why().what == "logit of '#13' − logit of '#29'"


def test_sources_are_made_in_their_order_when_they_are_read() -> None:
    marks = tuple(Mark(text, 0, 1, False, (place,)) for place, text in enumerate("abcd"))
    values, weights = np.array([0.1, -0.7, 0.3, 0.0]), np.array([0.2, 0.5, 0.3, 0.0])
    sources = HeadSources(marks, "text", values, weights)
    assert len(sources) == 3  # nothing reaches "d"
    assert [one.mark.text for one in sources] == ["b", "c", "a"]
    assert sources[0] == SourcePart(marks[1], 1, "text", -0.7, 0.5) and sources[-1].column == 0
    assert sources[:2] == (sources[0], sources[1]) and list(sources[5:]) == []
    with pytest.raises(IndexError):
        sources[3]


def test_the_first_word_is_a_sink_only_if_the_heads_of_this_run_make_it_one() -> None:
    marks = tuple(Mark(text, 0, 1, False, (place,)) for place, text in enumerate("abcde"))

    def heads(*firsts: float) -> list[HeadPart]:
        rows = [np.array([first, *[(1 - first) / 4] * 4]) for first in firsts]
        return [HeadPart("L0H0", 0.0, HeadSources(marks, "text", row, row)) for row in rows]

    assert sink_weight(heads(0.9, 0.3), 5) == pytest.approx(0.6)
    # a window hides the first word from the third head
    assert sink_weight(heads(0.9, 0.3, 0.0), 5) == pytest.approx(0.6)
    assert sink_weight(heads(0.2, 0.2), 5) is None  # as much as every word
    assert sink_weight(heads(0.35, 0.35), 5) is None  # less than twice that
    assert sink_weight(heads(0.25, 0.25), 100) is None
    assert sink_weight(heads(0.9), 2) is None and sink_weight([], 5) is None


def test_a_random_model_has_no_sink_and_is_not_said_to_have_one() -> None:
    why = shown_why().insight
    assert why.sink is None and not any("sink" in note for note in why.notes)
