from __future__ import annotations

from typing import Any

import pytest

from clearhead.errors import CheckpointError
from clearhead.models.families.gpt2 import FAMILY

FIELDS: dict[str, Any] = {
    "model_type": "gpt2", "vocab_size": 11, "n_embd": 6, "n_layer": 2, "n_head": 3,
    "n_positions": 13,
}  # fmt: skip


def test_read_and_written() -> None:
    config = FAMILY.read(FIELDS)
    assert config.feed_forward == 24  # four times the width
    assert config.activation == "gelu_tanh"
    assert config.attention_scale is None
    assert FAMILY.read(FIELDS | {"scale_attn_weights": False}).attention_scale == 1.0
    assert FAMILY.read(FAMILY.write(config)).resolved() == config.resolved()


def test_query_key_and_value_are_parts_of_one_transposed_matrix() -> None:
    sources = FAMILY.sources(FAMILY.read(FIELDS))
    places = [sources[f"stack.blocks.1.attention.{part}.weight"] for part in ("query", "value")]
    assert [place.name for place in places] == ["transformer.h.1.attn.c_attn.weight"] * 2
    assert [(place.part, place.parts, place.transposed) for place in places] == [
        (0, 3, True), (2, 3, True),
    ]  # fmt: skip


@pytest.mark.parametrize("field", ["scale_attn_by_inverse_layer_idx", "add_cross_attention"])
def test_what_is_not_known(field: str) -> None:
    with pytest.raises(CheckpointError, match=f"{field} is True: .* not known"):
        FAMILY.read(FIELDS | {field: True})
