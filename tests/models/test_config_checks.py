from __future__ import annotations

import dataclasses

import pytest

from clearhead.errors import ConfigError
from clearhead.models.config import ModelConfig
from clearhead.models.config_checks import DROPOUTS, SCALED, SIZES, check_config

CONFIG = ModelConfig(
    kind="decoder", vocab=11, context=13, model=6, layers=3, heads=1, feed_forward=7
)
FIELDS = {field.name for field in dataclasses.fields(ModelConfig)}


def test_the_names_are_those_of_fields() -> None:
    assert {*DROPOUTS, *SCALED, *SIZES} <= FIELDS
    assert {name for name in FIELDS if name.endswith("dropout")} == set(DROPOUTS)
    assert {name for name in FIELDS if name.endswith("rotary_scaling")} == set(SCALED)


@pytest.mark.parametrize("name", SIZES)
def test_sizes_have_bounds(name: str) -> None:
    least, most = SIZES[name]
    for value in (least - 1, -most):
        with pytest.raises(ConfigError, match=f"{name} must be {least} or more; got {value}"):
            CONFIG.changed(**{name: value})
    with pytest.raises(ConfigError, match=f"{name} must be {most:,} or less; got {most + 1}"):
        CONFIG.changed(**{name: most + 1})


@pytest.mark.parametrize("name", DROPOUTS)
def test_dropouts_are_shares(name: str) -> None:
    check_config(CONFIG.changed(**{name: 0.999}))
    for value in (1.0, -0.1, 7.0):
        with pytest.raises(ConfigError, match=f"{name} must be from 0 up to below 1; got {value}"):
            CONFIG.changed(**{name: value})
