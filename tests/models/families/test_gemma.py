from __future__ import annotations

from typing import Any

import pytest

from clearhead.errors import CheckpointError
from clearhead.models.families.gemma import FAMILY

FIELDS: dict[str, Any] = {
    "model_type": "gemma2", "vocab_size": 11, "hidden_size": 12, "intermediate_size": 17,
    "num_hidden_layers": 7, "num_attention_heads": 2, "head_dim": 6, "query_pre_attn_scalar": 16,
    "sliding_window": 5, "num_key_value_heads": 2,
}  # fmt: skip


def test_the_second_gemma() -> None:
    config = FAMILY.read(FIELDS)
    assert config.attention_scale == 0.25
    assert (config.attention_softcap, config.output_softcap) == (50.0, 30.0)
    assert config.window_layers == (True, False, True, False, True, False, True)
    assert config.norm_place == "around"
    assert config.embedding_scale == 12**0.5
    assert FAMILY.read(FAMILY.write(config)).resolved() == config.resolved()


def test_the_third_gemma() -> None:
    config = FAMILY.read(FIELDS | {"model_type": "gemma3_text", "rope_local_base_freq": 7_000})
    assert config.attention_norm
    assert config.attention_softcap is None
    assert config.window_layers == (True,) * 5 + (False, True)
    assert (config.rotary_base, config.window_rotary_base) == (1_000_000.0, 7_000.0)
    assert FAMILY.read(FAMILY.write(config)).resolved() == config.resolved()


def test_four_norms_in_each_block() -> None:
    sources = FAMILY.sources(FAMILY.read(FIELDS))
    norms = [ours for ours in sources if ours.startswith("stack.blocks.6") and "residual" in ours]
    assert len(norms) == 4
    assert sources["stack.blocks.6.feed_forward_residual.before.weight"].name == (
        "model.layers.6.pre_feedforward_layernorm.weight"
    )


def test_an_embedding_gemma_is_refused() -> None:
    with pytest.raises(CheckpointError, match="embedding model"):
        FAMILY.read(FIELDS | {"use_bidirectional_attention": True})
