from __future__ import annotations

from typing import Any

import pytest
import torch

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
    ends["tokenizer.ggml.eom_token_id"] = 7
    assert gguf_family(metadata("llama") | ends, [], 11)[1].eos == (2, 5, 7)


def test_rotary_scaling() -> None:
    linear = {"rope.scaling.type": "linear", "rope.scaling.factor": 3.0}
    assert gguf_family(metadata("llama", **linear), [], 11)[1].rotary_scaling == LinearScaling(3.0)
    factors = gguf_family(metadata("llama"), [], 11, (1.0, 2.0))[1].rotary_scaling
    assert factors == FactorScaling((1.0, 2.0))


def scaling(*, factors: tuple[float, ...] | None = None, **keys: Any) -> Any:
    """By the names of keys after "rope.scaling."; scale_linear stands beside them."""
    named = {f"rope.scaling.{key}": value for key, value in keys.items() if key != "linear"}
    if "linear" in keys:
        named["rope.scale_linear"] = keys["linear"]
    return gguf_family(metadata("llama", **named), [], 11, factors)[1].rotary_scaling


def test_a_factor_without_a_type_is_linear() -> None:
    assert scaling(factor=3.0) == scaling(linear=3.0) == LinearScaling(3.0)
    assert scaling(factor=3.0, linear=7.0) == LinearScaling(3.0)  # the older key is the second
    assert scaling(factor=3.0, type="none") is None
    assert scaling(factor=0.0) is scaling(factor=1.0) is None


def test_factors_of_pairs_come_on_top() -> None:
    pairs = (1.0, 2.0)
    assert scaling(factors=pairs, factor=3.0) == FactorScaling((3.0, 6.0))
    assert scaling(factors=pairs, factor=3.0, type="none") == FactorScaling(pairs)
    with pytest.raises(CheckpointError, match=r"by rope.scaling.type 'yarn' beside rope_freqs"):
        scaling(factors=pairs, type="yarn", factor=3.0)


def test_yarn_by_hand() -> None:
    found = scaling(type="yarn", factor=4.0, original_context_length=7)
    assert (found.factor, found.original_context) == (4.0, 7)
    assert found.gain == pytest.approx(1.138629436)  # 0.1 · ln 4 + 1
    doubled = scaling(type="yarn", factor=4.0, attn_factor=2.0)
    assert doubled.gain == pytest.approx(2.277258872)
    assert doubled.original_context == 13  # that of the model


def test_scalings_that_are_not_known() -> None:
    with pytest.raises(CheckpointError, match=r"rotary scaling by rope.scaling.type 'longrope'"):
        scaling(type="longrope", factor=2.0)
    with pytest.raises(CheckpointError, match=r"rotary scaling by rope.scaling.attn_factor"):
        scaling(attn_factor=1.5, factor=2.0)
    with pytest.raises(CheckpointError, match=r"by rope.scaling.attn_factor beside rope_freqs"):
        scaling(attn_factor=1.5, factors=(1.0, 2.0))


def test_a_gain_alone_turns_nothing() -> None:
    found = scaling(attn_factor=1.5)
    frequencies = torch.tensor([1.0, 0.1], dtype=torch.float64)
    assert torch.equal(found.slow(frequencies, 4, 1e4), frequencies)
    assert found.gain == 1.5


def test_windows() -> None:
    windowed = {"attention.sliding_window": 5}
    for pattern, marks in (
        (2, (True, False)), (0, (True, True)), (1, (False, False)), ([False, True], (False, True)),
        ([True, True], (True, True)),
    ):  # fmt: skip
        keys = windowed | {"attention.sliding_window_pattern": pattern}
        assert gguf_family(metadata("gemma3", **keys), [], 11)[1].window_layers == marks
    assert gguf_family(metadata("gemma3"), [], 11)[1].window is None
    assert gguf_family(metadata("gemma2"), [], 11)[1].window == 4096  # llama.cpp's default
    for architecture in ("llama", "qwen2", "qwen3"):
        with pytest.raises(CheckpointError, match=rf"{architecture}.attention.sliding_window is 5"):
            gguf_family(metadata(architecture, **windowed), [], 11)
        whole = metadata(architecture, **{"attention.sliding_window": 13})
        assert gguf_family(whole, [], 11)[1].window is None  # no text is longer


def test_layers_with_a_window_have_a_base_of_their_own() -> None:
    keys = {"rope.freq_base": 1e6, "rope.scaling.factor": 8.0, "attention.sliding_window": 5}
    third = gguf_family(metadata("gemma3", **keys), [], 11)[1]
    assert (third.window_rotary_base, third.window_rotary_scaling) == (1e4, None)
    assert third.rotary_scaling == LinearScaling(8.0)
    second = gguf_family(metadata("gemma2", **keys | {"rope.freq_base_swa": 7e3}), [], 11)[1]
    assert (second.window_rotary_base, second.window_rotary_scaling) == (7e3, LinearScaling(8.0))


def test_softcaps_by_default() -> None:
    second = gguf_family(metadata("gemma2"), [], 11)[1]
    assert (second.attention_softcap, second.output_softcap) == (50.0, 30.0)
    third = gguf_family(metadata("gemma3", attn_logit_softcapping=7.0), [], 11)[1]
    assert (third.attention_softcap, third.output_softcap) == (None, None)


def test_widths_of_heads() -> None:
    apart = {"attention.key_length": 6, "attention.value_length": 10}
    config = gguf_family(metadata("qwen3", **apart), [], 11)[1]
    assert (config.key_dim, config.value_dim, config.rotary_width) == (6, 10, None)
    for name in ("llama", "qwen2", "qwen3", "gemma2", "gemma3"):
        with pytest.raises(CheckpointError, match=rf"{name}.rope.dimension_count is 2, and its he"):
            gguf_family(metadata(name, **{"rope.dimension_count": 2}), [], 11)


def test_values_for_each_layer() -> None:
    assert (
        gguf_family(metadata("llama", feed_forward_length=[17, 17]), [], 11)[1].feed_forward == 17
    )
    with pytest.raises(CheckpointError, match="feed_forward_length differs between layers"):
        gguf_family(metadata("llama", feed_forward_length=[17, 19]), [], 11)
    with pytest.raises(CheckpointError, match="head_count has 20000 entries"):
        gguf_family(metadata("llama", **{"attention.head_count": [3] * 20_000}), [], 11)


def test_what_is_missing_or_unknown() -> None:
    with pytest.raises(CheckpointError, match=r"architecture is 'mamba'.*\n.*llama, qwen2"):
        gguf_family(metadata("mamba"), [], 11)
    with pytest.raises(CheckpointError, match=r"lacks .*llama\.embedding_length, llama"):
        gguf_family({"general.architecture": "llama"}, [], 11)
    family, config = gguf_family(metadata("llama"), [], 11)
    with pytest.raises(CheckpointError, match=r"has no config\.json"):
        family.write(config)
