from __future__ import annotations

from clearhead.views.why.text import percent, signed, summary
from tests.shared.explained_models import shown_why, why_of_a_date


def test_numbers_as_text() -> None:
    assert [signed(one) for one in (2.656, -1.0, 0.001, -0.001)] == [
        "+2.66",
        "−1.00",
        " 0.00",
        " 0.00",
    ]
    assert [percent(one) for one in (0.7725, 0.0125, 0.00002)] == ["77 %", "1.2 %", "< 0.01 %"]


def test_the_summary_names_a_head_that_ablation_confirms() -> None:
    why = why_of_a_date().insight
    assert "takes" in summary(why) and "Without this head" in summary(why)
    assert shown_why().insight.effects is not None
