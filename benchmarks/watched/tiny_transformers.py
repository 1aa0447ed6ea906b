"""Tiny random models of ``transformers``: any family, made from its own config class."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import torch
from torch import nn

SIZES: dict[str, Any] = {
    "vocab_size": 97, "hidden_size": 48, "d_model": 48, "n_embd": 48, "dim": 48, "embed_dim": 48,
    "emb_dim": 48, "embedding_size": 48, "word_embed_proj_dim": 48, "projection_dim": 24,
    "num_hidden_layers": 2, "n_layer": 2, "n_layers": 2, "num_layers": 2, "num_decoder_layers": 2,
    "encoder_layers": 2, "decoder_layers": 2, "num_encoder_layers": 2,
    "num_attention_heads": 6, "n_head": 6, "n_heads": 6, "num_heads": 6,
    "encoder_attention_heads": 6, "decoder_attention_heads": 6,
    "num_encoder_attention_heads": 6, "num_decoder_attention_heads": 6,
    "num_key_value_heads": 2, "head_dim": 8, "d_kv": 8, "rotary_dim": 4,
    "intermediate_size": 40, "ffn_dim": 40, "d_ff": 40, "hidden_dim": 40, "ffn_hidden_size": 40,
    "encoder_ffn_dim": 40, "decoder_ffn_dim": 40, "n_inner": 40, "dff": 40, "d_inner": 40,
    "max_position_embeddings": 64, "n_positions": 64, "n_ctx": 64, "max_seq_len": 64,
    "type_vocab_size": 2, "num_local_experts": 4, "num_experts": 4, "n_routed_experts": 4,
    "num_experts_per_tok": 2, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16,
    "image_size": 16, "patch_size": 4, "num_channels": 3, "pad_token_id": 0, "bos_token_id": 1,
    "eos_token_id": 2, "decoder_start_token_id": 1, "tie_word_embeddings": False,
}  # fmt: skip
"""What configs call their sizes; a config takes those that it knows."""


def config_of(family: str, **own: Any) -> Any:
    """A tiny config; ``own`` overrides sizes, with dictionaries for configs inside it."""
    hf = importlib.import_module("transformers")
    kind = hf.CONFIG_MAPPING[family]
    return kind(**_sizes(kind, own))


def _sizes(kind: Any, own: dict[str, Any]) -> dict[str, Any]:
    usual, mapped = kind().to_dict(), getattr(kind, "attribute_map", {})
    known = {*usual, *inspect.signature(kind.__init__).parameters, *mapped}
    given = {
        name: value
        for name, value in SIZES.items()
        if name in known
        and mapped.get(name) not in SIZES
        and not isinstance(usual.get(name), list | tuple)
    }
    parts = {}
    for name, inner in getattr(kind, "sub_configs", {}).items():
        if hasattr(inner, "to_dict") and inner.__name__ != "AutoConfig":
            parts[name] = _sizes(inner, own.get(name, {}))
    return {**given, **own, **parts}


def model_of(config: Any, kind: str, implementation: str) -> nn.Module:
    """The model of a config; ``kind`` is a class of ``transformers``, such as ``AutoModel``."""
    hf = importlib.import_module("transformers")
    torch.manual_seed(0)
    maker = getattr(hf, kind)
    if kind.startswith("Auto"):
        model = maker.from_config(config, attn_implementation=implementation)
    else:
        model = maker._from_config(config, attn_implementation=implementation)
    assert isinstance(model, nn.Module)
    return model.eval()
