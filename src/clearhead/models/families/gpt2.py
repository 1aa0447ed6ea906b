"""GPT-2 (Radford et al. 2019): learned positions, pre-norm, one matrix for q, k and v."""

from __future__ import annotations

from typing import Any

from clearhead.models.config import ModelConfig
from clearhead.models.families.common_fields import PLAIN, family_rules
from clearhead.models.families.family import Family, Source, with_bias
from clearhead.models.families.field_rules import REQUIRED, Fields, Refusal
from clearhead.models.families.field_values import (
    activation_of,
    apart,
    first_token,
    head_of,
    one_or_all,
    public_activation,
    token_ids,
)

SUMMARY = "only a head for multiple choice sums texts up"
RULES = {
    "gpt2": family_rules(
        {
            **dict.fromkeys(("vocab_size", "n_embd", "n_layer", "n_head", "n_positions"), REQUIRED),
            "n_inner": None, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5,
            "scale_attn_weights": True, "tie_word_embeddings": True, "resid_pdrop": 0.1,
            "embd_pdrop": 0.1, "attn_pdrop": 0.1, "bos_token_id": 50256, "eos_token_id": 50256,
            "pad_token_id": None,
        },
        {
            "reorder_and_upcast_attn": "the same numbers, in another order",
            "n_ctx": "n_positions decides, as in transformers",
            **dict.fromkeys(
                ("summary_type", "summary_use_proj", "summary_activation", "summary_first_dropout",
                 "summary_proj_to_labels", "summary_last_dropout", "hidden_dropout",
                 "predict_special_tokens", "n_special"), SUMMARY,
            ),
        },
        {
            **PLAIN,
            "scale_attn_by_inverse_layer_idx": Refusal("scores scaled by the layer are not known"),
            "add_cross_attention": Refusal("GPT-2 with cross-attention is not known"),
        },
        aliases={
            "hidden_size": "n_embd", "max_position_embeddings": "n_positions",
            "num_attention_heads": "n_head", "num_hidden_layers": "n_layer",
        },
    )
}  # fmt: skip


def read(fields: Fields) -> ModelConfig:
    """Return our config for the fields of a config.json."""
    head_of(fields, dict.fromkeys(("GPT2LMHeadModel", "GPT2Model")))
    dropout = float(fields["resid_pdrop"])
    return ModelConfig(
        kind="decoder",
        family="gpt2",
        vocab=fields["vocab_size"],
        context=fields["n_positions"],
        model=fields["n_embd"],
        layers=fields["n_layer"],
        heads=fields["n_head"],
        feed_forward=4 * fields["n_embd"] if fields["n_inner"] is None else fields["n_inner"],
        positions="learned",
        attention_bias=True,
        attention_output_bias=True,
        attention_scale=None if fields["scale_attn_weights"] else 1.0,
        activation=activation_of(fields, "activation_function"),
        feed_forward_bias=True,
        norm="layer",
        norm_epsilon=fields["layer_norm_epsilon"],
        tied=bool(fields["tie_word_embeddings"]),
        dropout=dropout,
        attention_dropout=apart(float(fields["attn_pdrop"]), dropout),
        embedding_dropout=apart(float(fields["embd_pdrop"]), dropout),
        bos=first_token(fields["bos_token_id"]),
        eos=token_ids(fields["eos_token_id"]),
        pad=first_token(fields["pad_token_id"]),
    )


def write(config: ModelConfig) -> dict[str, Any]:
    """Return the fields of a config.json for our config."""
    return {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "vocab_size": config.vocab,
        "n_positions": config.context,
        "n_embd": config.model,
        "n_layer": config.layers,
        "n_head": config.heads,
        "n_inner": config.feed_forward,
        "activation_function": public_activation(config),
        "layer_norm_epsilon": config.norm_epsilon,
        "scale_attn_weights": config.attention_scale is None,
        "tie_word_embeddings": config.tied,
        "resid_pdrop": config.dropout,
        "embd_pdrop": config.dropout_of("embedding"),
        "attn_pdrop": config.dropout_of("attention"),
        "bos_token_id": config.bos,
        "eos_token_id": one_or_all(config.eos),
        "pad_token_id": config.pad,
    }


def names(config: ModelConfig) -> dict[str, Source | str]:
    """Return the place of each of our tensors; GPT-2 stores matrices as (in, out)."""
    block, layer = "stack.blocks.{i}", "transformer.h.{i}"
    places: dict[str, Source | str] = {
        "stack.embedding.tokens.weight": "transformer.wte.weight",
        "stack.embedding.positions.weight": "transformer.wpe.weight",
    }
    places |= with_bias(
        {
            "stack.norm": "transformer.ln_f",
            f"{block}.attention_residual.before": f"{layer}.ln_1",
            f"{block}.feed_forward_residual.before": f"{layer}.ln_2",
        }
    )
    for kind in ("weight", "bias"):
        for part, ours in enumerate(("query", "key", "value")):
            places[f"{block}.attention.{ours}.{kind}"] = Source(
                f"{layer}.attn.c_attn.{kind}", part, 3, transposed=True
            )
        for ours, theirs in (
            ("attention.output", "attn.c_proj"),
            ("feed_forward.up", "mlp.c_fc"),
            ("feed_forward.down", "mlp.c_proj"),
        ):
            places[f"{block}.{ours}.{kind}"] = Source(f"{layer}.{theirs}.{kind}", transposed=True)
    if not config.tied:
        places["head.weight"] = "lm_head.weight"
    return places


FAMILY = Family(
    name="gpt2",
    model_types=("gpt2",),
    read_fields=read,
    write=write,
    names=names,
    rules=RULES,
    prefix="transformer.",
    ignored={
        ".attn.bias": "the causal mask, which needs no file",
        ".attn.masked_bias": "what old versions wrote over masked scores",
        "lm_head.weight": "the same numbers as the embedding, where the two are tied",
    },
)
