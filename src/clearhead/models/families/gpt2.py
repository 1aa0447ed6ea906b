"""GPT-2 (Radford et al. 2019): learned positions, pre-norm, one matrix for q, k and v."""

from __future__ import annotations

from typing import Any

from clearhead.errors import CheckpointError
from clearhead.models.config import ModelConfig
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
    with_bias,
)


def read(fields: Fields) -> ModelConfig:
    """Return our config for the fields of a config.json."""
    vocab, model, layers, heads, context = required(
        fields, "vocab_size", "n_embd", "n_layer", "n_head", "n_positions"
    )
    if fields.get("scale_attn_by_inverse_layer_idx") or fields.get("add_cross_attention"):
        raise CheckpointError("GPT-2 with scores scaled by layer or cross-attention is not known.")
    return ModelConfig(
        kind="decoder",
        family="gpt2",
        vocab=vocab,
        context=context,
        model=model,
        layers=layers,
        heads=heads,
        feed_forward=fields.get("n_inner") or 4 * model,
        positions="learned",
        attention_bias=True,
        attention_output_bias=True,
        attention_scale=None if fields.get("scale_attn_weights", True) else 1.0,
        activation=activation_named(fields.get("activation_function", "gelu_new")),
        feed_forward_bias=True,
        norm="layer",
        norm_epsilon=fields.get("layer_norm_epsilon", 1e-5),
        tied=bool(fields.get("tie_word_embeddings", True)),
        dropout=float(fields.get("resid_pdrop", 0.0)),
        bos=first_token(fields.get("bos_token_id")),
        eos=token_ids(fields.get("eos_token_id")),
        pad=first_token(fields.get("pad_token_id")),
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
        "embd_pdrop": config.dropout,
        "attn_pdrop": config.dropout,
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
    read=read,
    write=write,
    names=names,
    prefix="transformer.",
    ignored=(".attn.bias", ".attn.masked_bias", "lm_head.weight"),
)
