from __future__ import annotations

import pytest

from clearhead.attention.rotary import LinearScaling
from clearhead.errors import ConfigError
from clearhead.models.build import build
from clearhead.models.config import ModelConfig
from clearhead.models.families.clearhead import FAMILY

CONFIG = ModelConfig(
    kind="encoder-decoder", vocab=11, context=13, model=6, layers=2, encoder_layers=3, heads=3,
    feed_forward=7, rotary_scaling=LinearScaling(3.0), eos=(2, 5), sinks=True,
)  # fmt: skip


def test_any_config_comes_back() -> None:
    assert FAMILY.read(FAMILY.write(CONFIG) | {"dtype": "float32"}) == CONFIG


def test_every_tensor_has_its_own_name() -> None:
    names = FAMILY.names(CONFIG)
    assert set(names) == {name for name, _ in build(CONFIG).named_parameters()}
    assert all(ours == theirs for ours, theirs in names.items())


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(ConfigError, match="wings"):
        FAMILY.read(FAMILY.write(CONFIG) | {"wings": 2})
