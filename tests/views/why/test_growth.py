from __future__ import annotations

import pytest

from clearhead.views.why.growth import growth_of
from tests.shared.explained_models import shown_why, why_of_a_date


def test_bars_stand_on_zero_and_have_the_sums_as_heights() -> None:
    why = shown_why().insight
    growth = growth_of(why, 90, 50)
    sums = [layer.sum for layer in why.layers]
    unit = 50 / (max(0.0, *sums) - min(0.0, *sums))
    assert [bar.x for bar in growth.bars] == pytest.approx([0, 30, 60])
    for bar, total in zip(growth.bars, sums, strict=True):
        assert bar.height == pytest.approx(abs(total) * unit)
        foot = bar.y + bar.height if total > 0 else bar.y
        assert foot == pytest.approx(growth.zero)
        assert bar.y >= -1e-9 and bar.y + bar.height <= 50 + 1e-9


def test_one_layer_does_not_grow() -> None:
    assert growth_of(why_of_a_date().insight, 90, 50).bars == ()
