"""Gemma 2 and 3 (Google 2024, 2025): sandwich norms, GeGLU, windows in most layers."""

from __future__ import annotations

from typing import Any

from clearhead.errors import CheckpointError
from clearhead.models.config import ModelConfig
from clearhead.models.families import llama
from clearhead.models.families.family import (
    Family,
    Fields,
    Source,
    activation_named,
    first_token,
    one_or_all,
    public_activation,
    required,
    token_ids,
    window_marks,
)
from clearhead.models.families.rope import read_rope, rope_fields, write_rope


def read(fields: Fields) -> ModelConfig:
    """Return our config for the fields of a config.json."""
    vocab, model, hidden, layers, heads = required(
        fields, "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
        "num_attention_heads",
    )  # fmt: skip
    third = fields["model_type"] == "gemma3_text"
    if fields.get("use_bidirectional_attention"):
        raise CheckpointError("Gemma that looks ahead (an embedding model) is not known.")
    return ModelConfig(
        kind="decoder",
        family="gemma",
        vocab=vocab,
        context=fields.get("max_position_embeddings", 8192),
        model=model,
        layers=layers,
        heads=heads,
        kv_heads=fields.get("num_key_value_heads") or heads,
        key_dim=fields.get("head_dim", 256),
        feed_forward=hidden,
        **read_rope(fields, base=1_000_000.0 if third else 10_000.0),
        window_rotary_base=_window_base(fields) if third else None,
        attention_scale=fields.get("query_pre_attn_scalar", 256) ** -0.5,
        attention_norm=third,
        attention_softcap=fields.get("attn_logit_softcapping", None if third else 50.0),
        attention_bias=bool(fields.get("attention_bias")),
        attention_output_bias=bool(fields.get("attention_bias")),
        window=fields.get("sliding_window", 4096),
        window_layers=_window_layers(fields, layers, every=6 if third else 2),
        activation=activation_named(fields.get("hidden_activation") or "gelu_pytorch_tanh"),
        gated=True,
        norm_place="around",
        norm_epsilon=fields.get("rms_norm_eps", 1e-6),
        norm_offset=True,
        embedding_scale=model**0.5,
        tied=bool(fields.get("tie_word_embeddings", True)),
        output_softcap=fields.get("final_logit_softcapping", None if third else 30.0),
        bos=first_token(fields.get("bos_token_id")),
        eos=token_ids(fields.get("eos_token_id")),
        pad=first_token(fields.get("pad_token_id")),
    )


def _window_base(fields: Fields) -> float:
    if "sliding_attention" in (fields.get("rope_parameters") or {}):
        return float(rope_fields(fields, "sliding_attention")["rope_theta"])
    return float(fields.get("rope_local_base_freq", 10_000.0))


def _window_layers(fields: Fields, layers: int, every: int) -> tuple[bool, ...]:
    """The kinds by name, or all but each so-manyth layer."""
    kinds = fields.get("layer_types")
    if kinds is not None:
        return tuple(kind == "sliding_attention" for kind in kinds)
    every = fields.get("sliding_window_pattern") or every
    return window_marks(layers, lambda layer: bool((layer + 1) % every))


def write(config: ModelConfig) -> dict[str, Any]:
    """Return the fields of a config.json for our config."""
    third = config.attention_norm
    marks = (config.windowed(layer) for layer in range(config.layers))
    rope: dict[str, Any] = write_rope(config)
    if third:
        local = {"rope_type": "default", "rope_theta": config.window_rotary_base}
        rope = {"full_attention": rope, "sliding_attention": local}
    return {
        "model_type": "gemma3_text" if third else "gemma2",
        "architectures": ["Gemma3ForCausalLM" if third else "Gemma2ForCausalLM"],
        "vocab_size": config.vocab,
        "hidden_size": config.model,
        "intermediate_size": config.feed_forward,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads or config.heads,
        "head_dim": config.head_width,
        "hidden_activation": public_activation(config),
        "max_position_embeddings": config.context,
        "rms_norm_eps": config.norm_epsilon,
        "rope_parameters": rope,
        "attention_bias": config.attention_bias,
        "attn_logit_softcapping": config.attention_softcap,
        "final_logit_softcapping": config.output_softcap,
        "query_pre_attn_scalar": round((config.attention_scale or 1.0) ** -2),
        "sliding_window": config.window,
        "layer_types": ["sliding_attention" if mark else "full_attention" for mark in marks],
        "tie_word_embeddings": config.tied,
        "bos_token_id": config.bos,
        "eos_token_id": one_or_all(config.eos),
        "pad_token_id": config.pad,
    }


def names(config: ModelConfig) -> dict[str, Source | str]:
    """Llama's names, with two more norms."""
    block, layer = "stack.blocks.{i}", "model.layers.{i}"
    return llama.names(config) | {
        f"{block}.attention_residual.after.weight": f"{layer}.post_attention_layernorm.weight",
        f"{block}.feed_forward_residual.before.weight": f"{layer}.pre_feedforward_layernorm.weight",
        f"{block}.feed_forward_residual.after.weight": f"{layer}.post_feedforward_layernorm.weight",
    }


FAMILY = Family(
    name="gemma",
    model_types=("gemma2", "gemma3_text"),
    read=read,
    write=write,
    names=names,
    prefix="model.",
    ignored=("rotary_emb.inv_freq", "lm_head.weight"),
)
