from __future__ import annotations

from typing import Any

import pytest

from clearhead.errors import CheckpointError
from clearhead.models.families.t5 import FAMILY

FIELDS: dict[str, Any] = {
    "model_type": "t5", "vocab_size": 11, "d_model": 16, "d_ff": 17, "d_kv": 5, "num_layers": 2,
    "num_decoder_layers": 3, "num_heads": 2, "pad_token_id": 0,
}  # fmt: skip


def test_read_and_written() -> None:
    config = FAMILY.read(FIELDS)
    assert (config.encoder_layers, config.layers) == (2, 3)
    assert config.attention_scale == 1.0
    assert config.output_scale == 0.25  # 1 / √16, where the output matrix is tied
    assert config.start == 0
    assert FAMILY.read(FAMILY.write(config)).resolved() == config.resolved()


def test_flan_is_gated_and_untied() -> None:
    flan = FIELDS | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
    config = FAMILY.read(flan)
    assert (config.gated, config.activation, config.output_scale) == (True, "gelu_tanh", 1.0)
    sources = FAMILY.sources(config)
    assert sources["decoder.blocks.2.feed_forward.gate.weight"].name == (
        "decoder.block.2.layer.2.DenseReluDense.wi_0.weight"
    )
    assert sources["head.weight"].name == "lm_head.weight"
    assert "encoder.blocks.2.feed_forward.gate.weight" not in sources  # it has two layers


@pytest.mark.parametrize(
    ("fields", "activation", "gated"),
    [
        ({"feed_forward_proj": "relu"}, "relu", False),
        ({"feed_forward_proj": "gated-gelu"}, "gelu_tanh", True),
        ({"feed_forward_proj": "gated-silu"}, "silu", True),
        ({"feed_forward_proj": "gelu"}, "gelu", False),
        ({"feed_forward_proj": "gelu_new"}, "gelu_tanh", False),
        ({"dense_act_fn": "silu"}, "silu", False),
        ({"is_gated_act": True}, "relu", True),
        ({"feed_forward_proj": "gated-gelu", "dense_act_fn": "gelu"}, "gelu", True),
        ({"feed_forward_proj": "gated-gelu", "is_gated_act": False}, "gelu_tanh", False),
    ],
)
def test_activation_and_gate(fields: dict[str, Any], activation: str, gated: bool) -> None:
    config = FAMILY.read(FIELDS | fields)
    assert (config.activation, config.gated) == (activation, gated)
    assert FAMILY.read(FAMILY.write(config)) == config


def test_unknown_activations() -> None:
    for field in ("feed_forward_proj", "dense_act_fn"):
        with pytest.raises(CheckpointError, match=f"{field} is 'mish', an activation that is not"):
            FAMILY.read(FIELDS | {field: "mish"})
    with pytest.raises(CheckpointError, match="feed_forward_proj is 'mixed-gelu'; wanted is an ac"):
        FAMILY.read(FIELDS | {"feed_forward_proj": "mixed-gelu"})
