"""T5 (Raffel et al. 2020), and Flan-T5: relative positions, RMSNorm, scores without a scale."""

from __future__ import annotations

from typing import Any

from clearhead.errors import CheckpointError
from clearhead.models.config import ModelConfig
from clearhead.models.families.family import (
    Family,
    Fields,
    Source,
    attention_names,
    one_or_all,
    required,
    token_ids,
)

ACTIVATIONS = {"relu": ("relu", False), "gated-gelu": ("gelu_tanh", True)}


def read(fields: Fields) -> ModelConfig:
    """Return our config for the fields of a config.json."""
    vocab, model, hidden, width, layers, heads = required(
        fields, "vocab_size", "d_model", "d_ff", "d_kv", "num_layers", "num_heads"
    )
    feed_forward = fields.get("feed_forward_proj", "relu")
    if feed_forward not in ACTIVATIONS:
        raise CheckpointError(f"T5 with feed_forward_proj {feed_forward!r} is not known.")
    activation, gated = ACTIVATIONS[feed_forward]
    tied = bool(fields.get("tie_word_embeddings", True))
    return ModelConfig(
        kind="encoder-decoder",
        family="t5",
        vocab=vocab,
        context=fields.get("n_positions", 512),
        model=model,
        layers=fields.get("num_decoder_layers") or layers,
        encoder_layers=layers,
        heads=heads,
        key_dim=width,
        feed_forward=hidden,
        positions="relative",
        relative_buckets=fields.get("relative_attention_num_buckets", 32),
        relative_distance=fields.get("relative_attention_max_distance", 128),
        attention_scale=1.0,
        activation=activation,  # type: ignore[arg-type]
        gated=gated,
        norm_epsilon=fields.get("layer_norm_epsilon", 1e-6),
        tied=tied,
        output_scale=model**-0.5 if fields.get("scale_decoder_outputs", tied) else 1.0,
        dropout=float(fields.get("dropout_rate", 0.0)),
        eos=token_ids(fields.get("eos_token_id")),
        pad=fields.get("pad_token_id"),
        start=fields.get("decoder_start_token_id", fields.get("pad_token_id")),
    )


def write(config: ModelConfig) -> dict[str, Any]:
    """Return the fields of a config.json for our config."""
    return {
        "model_type": "t5",
        "architectures": ["T5ForConditionalGeneration"],
        "is_encoder_decoder": True,
        "vocab_size": config.vocab,
        "n_positions": config.context,
        "d_model": config.model,
        "d_ff": config.feed_forward,
        "d_kv": config.head_width,
        "num_layers": config.encoder_layers,
        "num_decoder_layers": config.layers,
        "num_heads": config.heads,
        "relative_attention_num_buckets": config.relative_buckets,
        "relative_attention_max_distance": config.relative_distance,
        "feed_forward_proj": "gated-gelu" if config.gated else "relu",
        "layer_norm_epsilon": config.norm_epsilon,
        "dropout_rate": config.dropout,
        "tie_word_embeddings": config.tied,
        "scale_decoder_outputs": config.output_scale != 1.0,
        "eos_token_id": one_or_all(config.eos),
        "pad_token_id": config.pad,
        "decoder_start_token_id": config.start,
    }


def names(config: ModelConfig) -> dict[str, Source | str]:
    """Return the place of each of our tensors."""
    places: dict[str, Source | str] = {"encoder.embedding.tokens.weight": "shared.weight"}
    for side, last in (("encoder", 1), ("decoder", 2)):
        block, layer = f"{side}.blocks.{{i}}", f"{side}.block.{{i}}.layer"
        places[f"{side}.norm.weight"] = f"{side}.final_layer_norm.weight"
        places[f"{side}.relative.weight"] = (
            f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        )
        places |= attention_names(
            f"{block}.attention", f"{layer}.0.SelfAttention.", "q k v o", bias=False,
            output_bias=False,
        )  # fmt: skip
        places[f"{block}.attention_residual.before.weight"] = f"{layer}.0.layer_norm.weight"
        if side == "decoder":
            places |= attention_names(
                f"{block}.cross_attention", f"{layer}.1.EncDecAttention.", "q k v o", bias=False,
                output_bias=False,
            )  # fmt: skip
            places[f"{block}.cross_residual.before.weight"] = f"{layer}.1.layer_norm.weight"
        inner = f"{layer}.{last}.DenseReluDense"
        places[f"{block}.feed_forward.down.weight"] = f"{inner}.wo.weight"
        if config.gated:
            places[f"{block}.feed_forward.gate.weight"] = f"{inner}.wi_0.weight"
            places[f"{block}.feed_forward.up.weight"] = f"{inner}.wi_1.weight"
        else:
            places[f"{block}.feed_forward.up.weight"] = f"{inner}.wi.weight"
        places[f"{block}.feed_forward_residual.before.weight"] = f"{layer}.{last}.layer_norm.weight"
    if not config.tied:
        places["head.weight"] = "lm_head.weight"
    return places


FAMILY = Family(
    name="t5",
    model_types=("t5",),
    read=read,
    write=write,
    names=names,
    ignored=(
        "encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight",
        "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",
    ),
)  # fmt: skip
