from __future__ import annotations

from typing import Any

import pytest

from clearhead.attention.rotary import (
    FactorScaling,
    LinearScaling,
    Llama3Scaling,
    RotaryScaling,
    YarnScaling,
)
from clearhead.errors import ConfigError
from clearhead.models.scalings import SCALINGS, check_scaling, scaling_fields, scaling_of

ALL: list[RotaryScaling] = [
    LinearScaling(3.0),
    Llama3Scaling(4.0, 23, 1.0, 5.0),
    YarnScaling(4.0, 23),
    FactorScaling((1.0, 2.0, 3.0)),
]


def test_every_kind_comes_back_from_plain_values() -> None:
    assert {type(scaling) for scaling in ALL} == set(SCALINGS.values())
    for scaling in ALL:
        assert scaling_of(scaling_fields(scaling)) == scaling
        check_scaling(scaling, pairs=3)
    assert scaling_of({"kind": "factors", "factors": [1.0, 2.0]}) == FactorScaling((1.0, 2.0))


@pytest.mark.parametrize("given", [7, {}, {"kind": "dynamic"}, {"kind": "linear", "wings": 2}])
def test_what_is_no_scaling(given: Any) -> None:
    with pytest.raises(ConfigError, match="rotary_scaling"):
        scaling_of(given)


@pytest.mark.parametrize(
    ("scaling", "message"),
    [
        (LinearScaling(0.0), "factor must be a number above 0; got 0.0"),
        (Llama3Scaling(4.0, 23, 5.0, 5.0), "low_frequency_factor must be below"),
        (FactorScaling((1.0, 2.0)), "a factor for each of 3 pairs; got 2"),
        (FactorScaling((1.0, 2.0, -3.0)), r"factors must be a number above 0; got -3\.0"),
    ],
)
def test_scalings_that_cannot_be(scaling: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_scaling(scaling, pairs=3)
