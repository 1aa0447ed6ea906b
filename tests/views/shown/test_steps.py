from __future__ import annotations

import pytest

from clearhead.explain.worked_examples import worked_example
from clearhead.views.shown import ShownSteps


def test_the_table_has_its_numbers_and_shows_itself() -> None:
    shown = ShownSteps(worked_example("selfish")[0])
    assert shown.query == (2.0, 0.0, -1.0) and shown.scale_name == "score"
    assert sum(row.weight for row in shown.rows) == pytest.approx(1.0)
    assert "q of “query” = [2 0 −1]" in repr(shown)
    assert shown.json().startswith('{\n "insight": "StepTable"')
