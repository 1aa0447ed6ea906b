from __future__ import annotations

from typing import Any

import pytest

from clearhead.attention.rotary import FactorScaling, LinearScaling, Llama3Scaling, YarnScaling
from clearhead.errors import CheckpointError
from clearhead.models.families.rope import (
    layer_rope_fields,
    read_rope,
    rope_fields,
    unread_inside,
    write_rope,
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
    assert layer_rope_fields(fields, "full_attention")["rope_theta"] == 5.0
    assert layer_rope_fields(fields, "sliding_attention")["rope_theta"] == 7.0
    older = {"rope_theta": 3.0, "rope_local_base_freq": 2.0}
    assert layer_rope_fields(older, "full_attention")["rope_theta"] == 3.0
    assert layer_rope_fields(older, "sliding_attention")["rope_theta"] == 2.0
    with pytest.raises(
        CheckpointError, match="rope_parameters has rope_theta; wanted are settings"
    ):
        layer_rope_fields({"rope_parameters": {"rope_theta": 5.0}}, "full_attention")


@pytest.mark.parametrize(
    "scaling",
    [None, LinearScaling(3.0), Llama3Scaling(4.0, 23, 1.0, 5.0), YarnScaling(4.0, 23, 31.0, 2.0)],
)
def test_what_is_written_is_read_again(scaling: Any) -> None:
    found = read_rope({"rope_parameters": write_rope(500.0, scaling)})
    assert found == {"rotary_base": 500.0, "rotary_scaling": scaling}


def test_scalings_that_are_not_known() -> None:
    with pytest.raises(CheckpointError, match="rotary scaling of type 'dynamic'"):
        read_rope({"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}})
    for name in ("mrope_section", "partial_rotary_factor"):
        with pytest.raises(CheckpointError, match=f"{name} of the rotary settings is 0.5"):
            read_rope({"rope_parameters": {name: 0.5}})
    with pytest.raises(CheckpointError, match="factors of a GGUF file cannot be said"):
        write_rope(500.0, FactorScaling((1.0, 2.0, 3.0)))


def test_the_trained_context_at_top_level_wins() -> None:
    yarn = {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 7}
    fields = {"rope_parameters": yarn, "max_position_embeddings": 40}
    assert rope_fields(fields)["original_max_position_embeddings"] == 7
    outside = fields | {"original_max_position_embeddings": 11}
    assert rope_fields(outside)["original_max_position_embeddings"] == 11
    assert rope_fields({"max_position_embeddings": 40})["original_max_position_embeddings"] == 40


def test_settings_that_nobody_knows() -> None:
    rope = {"rope_type": "default", "rope_theta": 5.0, "colour": 1}
    assert unread_inside({"rope_parameters": rope}) == ("rope_parameters.colour",)
    assert unread_inside({"rope_scaling": {"tone": 2}}) == ("rope_scaling.tone",)
    layers = {"full_attention": {}, "sliding_attention": rope}
    wanted = ("rope_parameters.sliding_attention.colour",)
    assert unread_inside({"rope_parameters": layers}) == wanted
    assert unread_inside({}) == ()
