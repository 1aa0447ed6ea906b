"""Llama (Touvron et al. 2023) and its relatives: Mistral, Qwen 2 and 3, SmolLM."""

from __future__ import annotations

from typing import Any

from clearhead.models.config import ModelConfig
from clearhead.models.families.family import (
    Family,
    Fields,
    Source,
    activation_named,
    attention_names,
    first_token,
    one_or_all,
    public_activation,
    required,
    token_ids,
    window_marks,
)
from clearhead.models.families.rope import read_rope, write_rope


def read(fields: Fields) -> ModelConfig:
    """Return our config for the fields of a config.json."""
    vocab, model, hidden, layers, heads = required(
        fields, "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
        "num_attention_heads",
    )  # fmt: skip
    kind = fields["model_type"]
    qwen = kind.startswith("qwen")
    window = fields.get("sliding_window", 4096) if qwen or kind == "mistral" else None
    if qwen and not fields.get("use_sliding_window"):
        window = None
    return ModelConfig(
        kind="decoder",
        family="llama",
        vocab=vocab,
        context=fields.get("max_position_embeddings", 2048),
        model=model,
        layers=layers,
        heads=heads,
        kv_heads=fields.get("num_key_value_heads") or heads,
        key_dim=fields.get("head_dim") or model // heads,
        feed_forward=hidden,
        **read_rope(fields),
        attention_bias=kind == "qwen2" or bool(fields.get("attention_bias")),
        attention_output_bias=kind != "qwen2" and bool(fields.get("attention_bias")),
        attention_norm=kind == "qwen3",
        window=window,
        window_layers=_window_layers(fields, layers) if window is not None and qwen else None,
        activation=activation_named(fields.get("hidden_act", "silu")),
        gated=True,
        feed_forward_bias=bool(fields.get("mlp_bias")),
        norm_epsilon=fields.get("rms_norm_eps", 1e-6),
        tied=bool(fields.get("tie_word_embeddings")),
        bos=first_token(fields.get("bos_token_id")),
        eos=token_ids(fields.get("eos_token_id")),
        pad=first_token(fields.get("pad_token_id")),
    )


def _window_layers(fields: Fields, layers: int) -> tuple[bool, ...]:
    """Qwen names the kind of each layer, or says from which layer on windows begin."""
    kinds = fields.get("layer_types")
    if kinds is not None:
        return tuple(kind == "sliding_attention" for kind in kinds)
    first = fields.get("max_window_layers", 28)
    return window_marks(layers, lambda layer: layer >= first)


def write(config: ModelConfig) -> dict[str, Any]:
    """The config.json of our config, for whichever relative can express it."""
    kind = "llama"
    if config.attention_norm:
        kind = "qwen3"
    elif config.attention_bias and not config.attention_output_bias:
        kind = "qwen2"
    elif config.window is not None:
        kind = "mistral"
    fields = {
        "model_type": kind,
        "architectures": [f"{kind.capitalize()}ForCausalLM"],
        "vocab_size": config.vocab,
        "hidden_size": config.model,
        "intermediate_size": config.feed_forward,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads or config.heads,
        "head_dim": config.head_width,
        "hidden_act": public_activation(config),
        "max_position_embeddings": config.context,
        "rms_norm_eps": config.norm_epsilon,
        "rope_parameters": write_rope(config),
        "attention_bias": config.attention_bias,
        "mlp_bias": config.feed_forward_bias,
        "tie_word_embeddings": config.tied,
        "sliding_window": config.window,
        "bos_token_id": config.bos,
        "eos_token_id": one_or_all(config.eos),
        "pad_token_id": config.pad,
    }
    if kind.startswith("qwen"):
        fields["use_sliding_window"] = config.window is not None
        if config.window is not None:
            marks = (config.windowed(layer) for layer in range(config.layers))
            fields["layer_types"] = [
                "sliding_attention" if mark else "full_attention" for mark in marks
            ]
    return fields


def names(config: ModelConfig) -> dict[str, Source | str]:
    """Return the place of each of our tensors."""
    block, layer = "stack.blocks.{i}", "model.layers.{i}"
    places: dict[str, Source | str] = {
        "stack.embedding.tokens.weight": "model.embed_tokens.weight",
        "stack.norm.weight": "model.norm.weight",
        f"{block}.attention_residual.before.weight": f"{layer}.input_layernorm.weight",
        f"{block}.feed_forward_residual.before.weight": f"{layer}.post_attention_layernorm.weight",
    }
    places |= attention_names(
        f"{block}.attention", f"{layer}.self_attn.", "q_proj k_proj v_proj o_proj",
        bias=config.attention_bias, output_bias=config.attention_output_bias,
    )  # fmt: skip
    for part in ("gate", "up", "down"):
        for kind in ("weight", "bias") if config.feed_forward_bias else ("weight",):
            places[f"{block}.feed_forward.{part}.{kind}"] = f"{layer}.mlp.{part}_proj.{kind}"
    if config.attention_norm:
        places[f"{block}.attention.query_norm.weight"] = f"{layer}.self_attn.q_norm.weight"
        places[f"{block}.attention.key_norm.weight"] = f"{layer}.self_attn.k_norm.weight"
    if not config.tied:
        places["head.weight"] = "lm_head.weight"
    return places


FAMILY = Family(
    name="llama",
    model_types=("llama", "mistral", "qwen2", "qwen3"),
    read=read,
    write=write,
    names=names,
    prefix="model.",
    ignored=("rotary_emb.inv_freq", "lm_head.weight"),
)
