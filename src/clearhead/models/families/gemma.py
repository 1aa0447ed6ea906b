"""Gemma 2 and 3 (Google 2024, 2025): sandwich norms, GeGLU, windows in most layers."""

from __future__ import annotations

from typing import Any

from clearhead.models.config import ModelConfig
from clearhead.models.families import llama, rope
from clearhead.models.families.common_fields import family_rules
from clearhead.models.families.family import Family, Source
from clearhead.models.families.field_rules import Fields, Refusal
from clearhead.models.families.field_values import (
    activation_of,
    apart,
    first_token,
    head_of,
    layer_kinds,
    one_or_all,
    public_activation,
    token_ids,
    window_marks,
    written_kinds,
)

BASES = {"full_attention": 1_000_000.0, "sliding_attention": 10_000.0}  # Gemma 3's
READ: dict[str, Any] = llama.SIZES | rope.READ | {
    "num_key_value_heads": 4, "head_dim": 256, "max_position_embeddings": 8192,
    "hidden_activation": "gelu_pytorch_tanh", "rms_norm_eps": 1e-6, "tie_word_embeddings": True,
    "attention_bias": False, "attention_dropout": 0.0, "query_pre_attn_scalar": 256,
    "sliding_window": 4096, "layer_types": None, "final_logit_softcapping": 30.0,
    "attn_logit_softcapping": 50.0, "pad_token_id": 0, "eos_token_id": 1, "bos_token_id": 2,
}  # fmt: skip
THIRD = {
    "max_position_embeddings": 131_072, "final_logit_softcapping": None,
    "rope_local_base_freq": None, "sliding_window_pattern": 6,
}  # fmt: skip
HARMLESS = {
    "hidden_act": "hidden_activation decides, as in transformers",
    "mlp_bias": llama.NO_BIAS,
    "_sliding_window_pattern": "layer_types, which transformers writes beside it, say it already",
}
REFUSED = rope.REFUSED | {
    "use_bidirectional_attention": Refusal(
        "a decoder that looks ahead (an embedding model) is not known"
    )
}
UNREAD = ("attn_logit_softcapping", "original_max_position_embeddings")
THIRD_READ = {name: READ[name] for name in READ if name not in UNREAD} | THIRD
RULES = {
    "gemma2": family_rules(
        READ, HARMLESS | {"sliding_window_pattern": "in Gemma 2 it is always 2"}, REFUSED,
        inside=rope.unread_inside,
    ),
    "gemma3_text": family_rules(
        THIRD_READ, HARMLESS | {"attn_logit_softcapping": "Gemma 3 applies none to its scores"},
        REFUSED | {
            "original_max_position_embeddings": Refusal("it belongs into rope_parameters", (None,))
        },
        inside=rope.unread_inside,
    ),
}  # fmt: skip


def read(fields: Fields) -> ModelConfig:
    """Return our config for the fields of a config.json."""
    third, layers = fields["model_type"] == "gemma3_text", fields["num_hidden_layers"]
    number, heads = 3 if third else 2, fields["num_attention_heads"]
    head_of(fields, dict.fromkeys((
        f"Gemma{number}ForCausalLM", f"Gemma{number}Model", f"Gemma{number}TextModel",
    )))  # fmt: skip
    return ModelConfig(
        kind="decoder",
        family="gemma",
        vocab=fields["vocab_size"],
        context=fields["max_position_embeddings"],
        model=fields["hidden_size"],
        layers=layers,
        heads=heads,
        kv_heads=fields["num_key_value_heads"] or heads,
        key_dim=fields["head_dim"],
        feed_forward=fields["intermediate_size"],
        **(_layered_rope(fields) if third else rope.read_rope(fields)),
        attention_scale=fields["query_pre_attn_scalar"] ** -0.5,
        attention_norm=third,
        attention_softcap=None if third else fields["attn_logit_softcapping"],
        attention_bias=bool(fields["attention_bias"]),
        attention_output_bias=bool(fields["attention_bias"]),
        window=fields["sliding_window"],
        window_layers=_window_layers(fields, layers, third),
        activation=activation_of(fields, "hidden_activation"),
        gated=True,
        norm_place="around",
        norm_epsilon=fields["rms_norm_eps"],
        norm_offset=True,
        embedding_scale=fields["hidden_size"] ** 0.5,
        tied=bool(fields["tie_word_embeddings"]),
        output_softcap=fields["final_logit_softcapping"],
        attention_dropout=apart(float(fields["attention_dropout"] or 0.0), 0.0),
        bos=first_token(fields["bos_token_id"]),
        eos=token_ids(fields["eos_token_id"]),
        pad=first_token(fields["pad_token_id"]),
    )


def _layered_rope(fields: Fields) -> dict[str, Any]:
    """Gemma 3's layers rotate by settings of their own, with a window or without one."""
    ours: dict[str, Any] = {}
    for layers, prefix in (("full_attention", ""), ("sliding_attention", "window_")):
        flat = rope.layer_rope_fields(fields, layers)
        ours[f"{prefix}rotary_base"] = float(flat["rope_theta"] or BASES[layers])
        ours[f"{prefix}rotary_scaling"] = rope.scaling_of(flat)
    return ours


def _window_layers(fields: Fields, layers: int, third: bool) -> tuple[bool, ...]:
    """The kinds by name, or all but each so-manyth layer."""
    kinds = layer_kinds(fields, layers, fields["sliding_window"])
    if kinds is not None:
        return kinds
    every = fields["sliding_window_pattern"] if third else 2
    return window_marks(layers, lambda layer: bool((layer + 1) % every))


def write(config: ModelConfig) -> dict[str, Any]:
    """Return the fields of a config.json for our config."""
    third = config.attention_norm
    settings = rope.rope_of(config)
    if third:
        base = config.window_rotary_base or config.rotary_base
        local = rope.write_rope(base, config.window_rotary_scaling)
        settings = {"full_attention": settings, "sliding_attention": local}
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
        "rope_parameters": settings,
        "attention_bias": config.attention_bias,
        "attention_dropout": config.dropout_of("attention"),
        "attn_logit_softcapping": config.attention_softcap,
        "final_logit_softcapping": config.output_softcap,
        "query_pre_attn_scalar": round((config.attention_scale or 1.0) ** -2),
        "sliding_window": config.window,
        "layer_types": written_kinds(config),
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
    read_fields=read,
    write=write,
    names=names,
    rules=RULES,
    prefix="model.",
    ignored=llama.FAMILY.ignored,
)
