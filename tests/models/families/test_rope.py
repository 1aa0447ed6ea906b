from __future__ import annotations

from typing import Any

import pytest

from clearhead.attention.rotary import FactorScaling, LinearScaling, Llama3Scaling, YarnScaling
from clearhead.errors import CheckpointError
from clearhead.models.config import ModelConfig
from clearhead.models.families.rope import read_rope, rope_fields, write_rope

CONFIG = ModelConfig(
    kind="decoder", vocab=11, context=13, model=6, layers=1, heads=1, feed_forward=7
)


def test_old_and_new_fields_mean_the_same() -> None:
    old = {"rope_theta": 500, "rope_scaling": {"type": "linear", "factor": 3}}
    new = {"rope_parameters": {"rope_type": "linear", "factor": 3, "rope_theta": 500}}
    wanted = {"rotary_base": 500.0, "rotary_scaling": LinearScaling(3.0)}
    assert read_rope(old) == read_rope(new) == wanted


def test_without_any_field_the_base_is_the_default() -> None:
    assert read_rope({}, base=7.0) == {"rotary_base": 7.0, "rotary_scaling": None}


def test_settings_for_kinds_of_layers() -> None:
    fields = {"rope_parameters": {
        "full_attention": {"rope_theta": 5.0}, "sliding_attention": {"rope_theta": 7.0},
    }}  # fmt: skip
    assert rope_fields(fields)["rope_theta"] == 5.0
    assert rope_fields(fields, "sliding_attention")["rope_theta"] == 7.0


@pytest.mark.parametrize(
    "scaling",
    [None, LinearScaling(3.0), Llama3Scaling(4.0, 23, 1.0, 5.0), YarnScaling(4.0, 23, 31.0, 2.0)],
)
def test_what_is_written_is_read_again(scaling: Any) -> None:
    config = CONFIG.changed(rotary_base=500.0, rotary_scaling=scaling)
    found = read_rope({"rope_parameters": write_rope(config)})
    assert found == {"rotary_base": 500.0, "rotary_scaling": scaling}


def test_scalings_that_are_not_known() -> None:
    with pytest.raises(CheckpointError, match="rotary scaling of type 'dynamic'"):
        read_rope({"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}})
    with pytest.raises(CheckpointError, match="type 'yarn'"):
        read_rope({"rope_scaling": {"rope_type": "yarn", "factor": 2.0, "mscale": 1.0}})
    factors = CONFIG.changed(rotary_scaling=FactorScaling((1.0, 2.0, 3.0)))
    with pytest.raises(CheckpointError, match="factors of a GGUF file cannot be said"):
        write_rope(factors)
