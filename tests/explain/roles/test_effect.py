from __future__ import annotations

import pytest

from clearhead.explain.roles.effect import Change, Effect


def test_an_effect_is_plain_data() -> None:
    change = Change(0.5, 0.1, 7)
    effect = Effect("L0H1", "names", "zero", "loss", change, Change(0.0, 0.1, 9))
    assert effect.at_cases == change != effect.elsewhere
    with pytest.raises(AttributeError):
        effect.head = "L0H2"  # type: ignore[misc]
