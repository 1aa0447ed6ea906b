"""Llama (Touvron et al. 2023) and its relatives: Mistral, Qwen 2 and 3, SmolLM."""

from __future__ import annotations

from typing import Any

from clearhead.errors import CheckpointError
from clearhead.models.config import ModelConfig
from clearhead.models.families import rope
from clearhead.models.families.common_fields import family_rules
from clearhead.models.families.family import Family, Source, attention_names
from clearhead.models.families.field_rules import REQUIRED, FieldRules, Fields, Refusal
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

SIZES = dict.fromkeys(
    ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"),
    REQUIRED,
)
READ: dict[str, Any] = SIZES | rope.READ | {
    "num_key_value_heads": None, "head_dim": None, "max_position_embeddings": 2048,
    "hidden_act": "silu", "rms_norm_eps": 1e-6, "tie_word_embeddings": False,
    "attention_dropout": 0.0, "bos_token_id": None, "eos_token_id": None, "pad_token_id": None,
}  # fmt: skip
QWEN = {
    "use_sliding_window": False, "sliding_window": 4096, "max_window_layers": 28,
    "layer_types": None, "num_key_value_heads": 32, "max_position_embeddings": 32768,
}  # fmt: skip
LLAMA = {
    "attention_bias": False, "mlp_bias": False, "layer_types": None, "bos_token_id": 1,
    "eos_token_id": 2,
}  # fmt: skip
MISTRAL = {
    "sliding_window": 4096, "layer_types": None, "num_key_value_heads": 8,
    "max_position_embeddings": 131_072, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
NO_BIAS = "models of this type have no such bias, whatever the field says"
WITHOUT = {"pretraining_tp": "the same numbers, from several parts of each matrix"}


def _rules(
    read: dict[str, Any],
    harmless: dict[str, str] | None = None,
    refused: dict[str, Refusal] | None = None,
) -> FieldRules:
    return family_rules(
        READ | read,
        WITHOUT | (harmless or {}),
        rope.REFUSED | (refused or {}),
        inside=rope.unread_inside,
    )


RULES = {
    "llama": _rules(
        LLAMA, dict.fromkeys(("sliding_window", "use_sliding_window", "max_window_layers"),
                             "Llama has no windows, whatever the field says"),
    ),
    "mistral": _rules(MISTRAL, {
        **dict.fromkeys(("attention_bias", "mlp_bias"), NO_BIAS),
        **dict.fromkeys(("use_sliding_window", "max_window_layers"),
                        "sliding_window decides in Mistral"),
    }),
    "qwen2": _rules(
        QWEN, dict.fromkeys(("attention_bias", "mlp_bias"), "always there, or never, in Qwen 2")
    ),
    "qwen3": _rules(QWEN | {"head_dim": 128, "attention_bias": False}, {"mlp_bias": NO_BIAS}),
}  # fmt: skip


def read(fields: Fields) -> ModelConfig:
    """Return our config for the fields of a config.json."""
    kind, heads, model = fields["model_type"], fields["num_attention_heads"], fields["hidden_size"]
    qwen, layers = kind.startswith("qwen"), fields["num_hidden_layers"]
    head_of(fields, dict.fromkeys((f"{kind.capitalize()}ForCausalLM", f"{kind.capitalize()}Model")))
    window = fields.get("sliding_window") if qwen or kind == "mistral" else None
    if qwen and not fields["use_sliding_window"]:
        window = None
    attention_bias = kind != "mistral" and bool(fields.get("attention_bias"))
    return ModelConfig(
        kind="decoder",
        family="llama",
        vocab=fields["vocab_size"],
        context=fields["max_position_embeddings"],
        model=model,
        layers=layers,
        heads=heads,
        kv_heads=heads if fields["num_key_value_heads"] is None else fields["num_key_value_heads"],
        key_dim=model // heads if fields["head_dim"] is None else fields["head_dim"],
        feed_forward=fields["intermediate_size"],
        **rope.read_rope(fields),
        attention_bias=kind == "qwen2" or attention_bias,
        attention_output_bias=kind != "qwen2" and attention_bias,
        attention_norm=kind == "qwen3",
        window=window,
        window_layers=_window_layers(fields, layers, window, qwen),
        activation=activation_of(fields, "hidden_act"),
        gated=True,
        feed_forward_bias=kind == "llama" and bool(fields["mlp_bias"]),
        norm_epsilon=fields["rms_norm_eps"],
        tied=bool(fields["tie_word_embeddings"]),
        attention_dropout=apart(float(fields["attention_dropout"] or 0.0), 0.0),
        bos=first_token(fields["bos_token_id"]),
        eos=token_ids(fields["eos_token_id"]),
        pad=first_token(fields["pad_token_id"]),
    )


def _window_layers(
    fields: Fields, layers: int, window: int | None, qwen: bool
) -> tuple[bool, ...] | None:
    """The kind of each layer by name; else Qwen says from which layer on windows begin."""
    kinds = layer_kinds(fields, layers, window)
    if not qwen and kinds is not None and not all(mark == (window is not None) for mark in kinds):
        raise CheckpointError(
            "config.json: layer_types mixes kinds of layers, which is not known in this type.",
            hint="transformers reads a mistral of this kind as the model_type ministral.",
        )
    if window is None or not qwen:
        return None
    if kinds is not None:
        return kinds
    first = fields["max_window_layers"]
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
        "rope_parameters": rope.rope_of(config),
        "attention_bias": config.attention_bias,
        "attention_dropout": config.dropout_of("attention"),
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
            fields["layer_types"] = written_kinds(config)
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
    read_fields=read,
    write=write,
    names=names,
    rules=RULES,
    prefix="model.",
    ignored={
        "rotary_emb.inv_freq": "the rotary settings say it already",
        "lm_head.weight": "the same numbers as the embedding, where the two are tied",
    },
)
