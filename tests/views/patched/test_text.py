from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from clearhead.views.patched.text import (
    WORDS,
    answers,
    headline,
    proof_text,
    shown_columns,
    summary,
)
from tests.shared.patched_models import shown_patch_map

pytestmark = pytest.mark.usefixtures("one_thread")


def test_the_summary_names_words_layers_and_the_head() -> None:
    found = shown_patch_map().insight
    states, heads = np.zeros((3, 7)), np.zeros((3, 6))
    states[:, 2], states[:, 6] = (0.9, 0.8, 0.2), (0.1, 0.3, 1.0)
    heads[1, 4] = 0.61
    said = summary(replace(found, states=states, heads=heads))
    assert said.startswith(
        "The difference stands in “cd/cx” from L0 to L1, then in “gh” behind L2."
    )
    assert "L1H4 carries most of it" in said and "61 %" in said
    assert "No single head carries the answer" in summary(
        replace(found, states=states, heads=-heads)
    )
    heads[0, 2], heads[1, 4] = -0.7, 0.15  # the strongest moves away from the other text's answer
    said = summary(replace(found, states=states, heads=heads))
    assert "No single head carries most of it; the largest share has L1H4" in said
    assert "15 %" in said


def test_what_both_texts_predict() -> None:
    found = shown_patch_map().insight
    assert headline(found) == "What makes it “a” here and “b” there?"
    first, second = answers(found)
    assert f"{abs(found.target):.2f}" in first and f"{abs(found.donor_target):.2f}" in second


def test_only_words_that_can_differ_are_drawn() -> None:
    found = shown_patch_map().insight
    assert shown_columns(found) == [2, 3, 4, 5, 6]
    assert len(shown_columns(found)) <= WORDS


def test_a_wrong_whole_is_said() -> None:
    found = shown_patch_map().insight
    assert proof_text(found).endswith("exact.")
    assert "NOT proved" in proof_text(replace(found, whole=0.5))
