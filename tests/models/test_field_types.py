from __future__ import annotations

from typing import Any, Literal

import pytest

from clearhead.attention.rotary import LinearScaling, RotaryScaling
from clearhead.models.field_types import type_mismatch


@pytest.mark.parametrize(
    ("hint", "good", "bad", "wanted"),
    [
        (int, [7, 0, -1], [7.0, "7", True, [7]], "a whole number"),
        (int, [7], [None], "given"),
        (int | None, [7, None], [7.0, False], "a whole number"),
        (
            float,
            [7, 7.5, 2**62, 1e30],
            ["7", True, float("nan"), float("inf"), 1e31, 2**63, 10**400],
            "a finite number",
        ),
        (bool, [True], [1, "true"], "true or false"),
        (str, ["a"], [1], "text"),
        (Literal["a", "b"], ["a"], ["c", 1], "one of a, b"),
        (tuple[int, ...], [(), (7, 5)], [[7], (7, "5"), 7], "a list, each entry a whole number"),
        (RotaryScaling | None, [None, LinearScaling(2.0)], [2.0], "a rotary scaling"),
    ],
)
def test_values_and_their_types(hint: Any, good: list[Any], bad: list[Any], wanted: str) -> None:
    assert [type_mismatch(value, hint) for value in good] == [None] * len(good)
    assert [type_mismatch(value, hint) for value in bad] == [wanted] * len(bad)
