from __future__ import annotations

from clearhead.views.shown import ShownDifference
from tests.shared.golden_pictures import difference


def test_the_difference_has_its_lists_and_shows_itself() -> None:
    shown = ShownDifference(difference())
    assert [head.before for head in shown.heads] == ["L1H0", "L0H1"]
    assert shown.gone == ("right",) and shown.new == ()
    assert "Weights that changed most" in str(shown)
    assert shown.csv().startswith("what,head,before")
