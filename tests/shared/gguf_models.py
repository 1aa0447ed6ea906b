"""Tiny models of transformers written as GGUF files the way llama.cpp's converter does it.

Names come from the ``gguf`` package's own map. What the converter does to numbers is done here:
queries and keys of the architecture ``llama`` are reordered so that neighbours rotate together,
Gemma's norms get the 1 that they lack, GPT-2's matrices are transposed.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from numpy.typing import NDArray

from tests.shared.tiny_models import VOCAB

Array = NDArray[np.float32]
F32, F16 = gguf.GGMLQuantizationType.F32, gguf.GGMLQuantizationType.F16


def write_gguf(
    model: Any,
    path: Path,
    architecture: str,
    kind: Any = F32,
    keys: dict[str, Any] | None = None,
) -> Path:
    """Write a model; matrices as ``kind``, vectors always as F32. The model's own matrices are set
    to what the file can hold of them, so that it stays the reference. ``keys`` of the architecture
    are written besides, or instead."""
    writer = gguf.GGUFWriter(path, architecture)
    _write_sizes(writer, model.config, architecture)
    _write_vocabulary(writer)
    _write_keys(writer, architecture, keys or {})
    names = gguf.get_tensor_name_map(
        {name: arch for arch, name in gguf.MODEL_ARCH_NAMES.items()}[architecture],
        model.config.num_hidden_layers,
    )
    tied = model.config.tie_word_embeddings
    with torch.no_grad():
        for place, parameter in model.state_dict().items():
            if tied and place == "lm_head.weight":
                continue
            stem, _, ending = place.rpartition(".")
            name = f"{names.get_name(stem)}.{ending}"
            held = kind if parameter.ndim == 2 else F32
            stored = gguf.quants.quantize(parameter.float().numpy(), held)
            parameter.copy_(torch.from_numpy(gguf.quants.dequantize(stored, held)))
            converted = _converted(parameter.numpy(), place, model.config, architecture)
            writer.add_tensor(name, gguf.quants.quantize(converted, held), raw_dtype=held)
    factors = _llama3_factors(model.config)
    if factors is not None:
        writer.add_tensor("rope_freqs.weight", factors)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _converted(numbers: Array, place: str, config: Any, architecture: str) -> Array:
    if architecture == "llama" and ("q_proj" in place or "k_proj" in place):
        heads = config.num_attention_heads if "q_proj" in place else config.num_key_value_heads
        halves = numbers.reshape(heads, 2, -1, *numbers.shape[1:])
        return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(numbers.shape))
    if architecture.startswith("gemma") and place.endswith("norm.weight"):
        return numbers + 1
    if architecture == "gpt2" and place.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")):
        return np.ascontiguousarray(numbers.T)
    return numbers


def _write_sizes(writer: gguf.GGUFWriter, config: Any, architecture: str) -> None:
    writer.add_name("tiny")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_head_count(config.num_attention_heads)
    if architecture == "gpt2":
        writer.add_feed_forward_length(config.n_inner or 4 * config.n_embd)
        writer.add_layer_norm_eps(config.layer_norm_epsilon)
        return
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    width = getattr(config, "head_dim", config.hidden_size // config.num_attention_heads)
    if architecture == "llama":
        writer.add_rope_dimension_count(width)
    rope = config.rope_parameters
    rope = rope.get("full_attention", rope)
    writer.add_rope_freq_base(rope["rope_theta"])
    if architecture != "qwen2":
        writer.add_key_length(width)
        writer.add_value_length(width)
    if rope["rope_type"] == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(rope["factor"])
    if architecture.startswith("gemma"):
        writer.add_sliding_window(config.sliding_window)
    if architecture == "gemma2":
        writer.add_attn_logit_softcapping(config.attn_logit_softcapping)
        writer.add_final_logit_softcapping(config.final_logit_softcapping)


def _write_keys(writer: gguf.GGUFWriter, architecture: str, keys: dict[str, Any]) -> None:
    adders = {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32,
              str: writer.add_string, list: writer.add_array}  # fmt: skip
    for key, value in keys.items():
        writer.kv_data[0].pop(f"{architecture}.{key}", None)
        if value is not None:
            adders[type(value)](f"{architecture}.{key}", value)


def _write_vocabulary(writer: gguf.GGUFWriter) -> None:
    letters = [chr(number) for number in range(33, 33 + VOCAB - 4)]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(["<pad>", "<s>", "</s>", "ab", *letters][:VOCAB])
    writer.add_token_types([3, 3, 3] + [1] * (VOCAB - 3))
    writer.add_token_merges(["a b"])
    writer.add_pad_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)


def _llama3_factors(config: Any) -> Array | None:
    """Llama 3's rule spelled out: by how much each pair of a head turns slower."""
    rope = getattr(config, "rope_parameters", None) or {}
    if rope.get("rope_type") != "llama3":
        return None
    low = rope["original_max_position_embeddings"] / rope["low_freq_factor"]
    high = rope["original_max_position_embeddings"] / rope["high_freq_factor"]
    factors = []
    for pair in range(0, config.head_dim, 2):
        wave = 2 * math.pi * rope["rope_theta"] ** (pair / config.head_dim)
        share = (rope["original_max_position_embeddings"] / wave - rope["low_freq_factor"]) / (
            rope["high_freq_factor"] - rope["low_freq_factor"]
        )
        if wave < high:
            factors.append(1.0)
        elif wave > low:
            factors.append(rope["factor"])
        else:
            factors.append(1 / ((1 - share) / rope["factor"] + share))
    return np.array(factors, dtype=np.float32)
