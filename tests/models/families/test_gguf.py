from __future__ import annotations

from typing import Any

import pytest

from clearhead.attention.rotary import FactorScaling, LinearScaling
from clearhead.errors import CheckpointError
from clearhead.models.families.gguf import gguf_family


def metadata(architecture: str, **more: Any) -> dict[str, Any]:
    sizes = {
        "context_length": 13, "embedding_length": 12, "block_count": 2, "feed_forward_length": 17,
        "attention.head_count": 3, "attention.layer_norm_rms_epsilon": 1e-5,
        "attention.layer_norm_epsilon": 1e-5,
    }  # fmt: skip
    named = {f"{architecture}.{key}": value for key, value in (sizes | more).items()}
    return {"general.architecture": architecture, **named}


def test_llama_stores_queries_and_keys_in_pairs() -> None:
    family, config = gguf_family(metadata("llama", **{"attention.head_count_kv": 1}), [], 11)
    assert (config.vocab, config.kv_heads, config.tied) == (11, 1, True)
    sources = family.sources(config)
    assert sources["stack.blocks.1.attention.query.weight"].paired_heads == 3
    assert sources["stack.blocks.1.attention.key.weight"].paired_heads == 1
    other, qwen = gguf_family(metadata("qwen2"), ["output.weight", "blk.0.attn_q.bias"], 11)
    assert (qwen.tied, qwen.attention_bias) == (False, True)
    assert other.sources(qwen)["stack.blocks.1.attention.query.weight"].paired_heads == 0


def test_gemma_norms_are_shifted_back() -> None:
    family, config = gguf_family(metadata("gemma2"), [], 11)
    assert config.family == "gemma"
    assert family.sources(config)["stack.norm.weight"].shift == -1.0


def test_gpt2_has_one_matrix_for_query_key_and_value() -> None:
    family, config = gguf_family(metadata("gpt2"), [], 11)
    place = family.sources(config)["stack.blocks.0.attention.value.bias"]
    assert (place.name, place.part, place.parts) == ("blk.0.attn_qkv.bias", 2, 3)


def test_both_ends_of_a_chat() -> None:
    ends = {"tokenizer.ggml.eos_token_id": 2, "tokenizer.ggml.eot_token_id": 5}
    assert gguf_family(metadata("llama") | ends, [], 11)[1].eos == (2, 5)


def test_rotary_scaling() -> None:
    linear = {"rope.scaling.type": "linear", "rope.scaling.factor": 3.0}
    assert gguf_family(metadata("llama", **linear), [], 11)[1].rotary_scaling == LinearScaling(3.0)
    factors = gguf_family(metadata("llama"), [], 11, (1.0, 2.0))[1].rotary_scaling
    assert factors == FactorScaling((1.0, 2.0))
    with pytest.raises(CheckpointError, match="rotary scaling of type 'yarn'"):
        gguf_family(metadata("llama", **{"rope.scaling.type": "yarn"}), [], 11)


def test_what_is_missing_or_unknown() -> None:
    with pytest.raises(CheckpointError, match=r"architecture is 'mamba'.*\n.*llama, qwen2"):
        gguf_family(metadata("mamba"), [], 11)
    with pytest.raises(CheckpointError, match=r"lacks llama\.embedding_length"):
        gguf_family({"general.architecture": "llama"}, [], 11)
    family, config = gguf_family(metadata("llama"), [], 11)
    with pytest.raises(CheckpointError, match=r"has no config\.json"):
        family.write(config)
