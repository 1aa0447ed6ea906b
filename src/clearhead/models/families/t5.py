"""T5 (Raffel et al. 2020), and Flan-T5: relative positions, RMSNorm, scores without a scale."""

from __future__ import annotations

from typing import Any

from clearhead.errors import CheckpointError
from clearhead.models.config import ModelConfig
from clearhead.models.families.bart import embedding_names
from clearhead.models.families.common_fields import BOTH_SIDES, PLAIN, family_rules
from clearhead.models.families.family import Family, Source, attention_names
from clearhead.models.families.field_rules import REQUIRED, Fields, Refusal
from clearhead.models.families.field_values import (
    activation_of,
    head_of,
    one_or_all,
    public_activation,
    token_ids,
)

RULES = {
    "t5": family_rules(
        {
            **dict.fromkeys(
                ("vocab_size", "d_model", "d_ff", "d_kv", "num_layers", "num_heads"), REQUIRED
            ),
            "num_decoder_layers": None, "n_positions": 512, "relative_attention_num_buckets": 32,
            "relative_attention_max_distance": 128, "feed_forward_proj": "relu",
            "dense_act_fn": None, "is_gated_act": None, "layer_norm_epsilon": 1e-6,
            "tie_word_embeddings": True, "scale_decoder_outputs": None, "dropout_rate": 0.1,
            "eos_token_id": 1, "pad_token_id": 0, "decoder_start_token_id": None,
        },
        harmless={"max_position_embeddings": "positions are distances, which have no end"},
        refused={
            **{name: rule for name, rule in PLAIN.items() if name != "head_dim"},
            **BOTH_SIDES,
            "is_decoder": Refusal("a decoder without an encoder is not known in this type"),
        },
        aliases={
            "hidden_size": "d_model", "num_attention_heads": "num_heads",
            "num_hidden_layers": "num_layers", "head_dim": "d_kv",
        },
    )
}  # fmt: skip


def read(fields: Fields) -> ModelConfig:
    """Return our config for the fields of a config.json."""
    head_of(fields, dict.fromkeys(("T5ForConditionalGeneration", "T5Model", "T5WithLMHeadModel")))
    layers, model = fields["num_layers"], fields["d_model"]
    activation, gated = _feed_forward(fields)
    tied, dropout = bool(fields["tie_word_embeddings"]), float(fields["dropout_rate"])
    scaled = tied if fields["scale_decoder_outputs"] is None else fields["scale_decoder_outputs"]
    start = fields["decoder_start_token_id"]
    return ModelConfig(
        kind="encoder-decoder",
        family="t5",
        vocab=fields["vocab_size"],
        context=fields["n_positions"],
        model=model,
        layers=layers if fields["num_decoder_layers"] is None else fields["num_decoder_layers"],
        encoder_layers=layers,
        heads=fields["num_heads"],
        key_dim=fields["d_kv"],
        feed_forward=fields["d_ff"],
        positions="relative",
        relative_buckets=fields["relative_attention_num_buckets"],
        relative_distance=fields["relative_attention_max_distance"],
        attention_scale=1.0,
        activation=activation,
        gated=gated,
        norm_epsilon=fields["layer_norm_epsilon"],
        tied=tied,
        output_scale=model**-0.5 if scaled else 1.0,
        dropout=dropout,
        activation_dropout=dropout,
        eos=token_ids(fields["eos_token_id"]),
        pad=fields["pad_token_id"],
        start=fields["pad_token_id"] if start is None else start,
    )


def _feed_forward(fields: Fields) -> tuple[Any, bool]:
    """Activation and gate: what feed_forward_proj says, unless the newer fields say otherwise."""
    name = "feed_forward_proj"
    first, _, second = str(fields[name]).partition("-")
    if second and first != "gated":
        raise CheckpointError(
            f"config.json: {name} is {str(fields[name])[:60]!r}; wanted is an activation, or "
            "gated- and an activation."
        )
    theirs = "gelu_new" if fields[name] == "gated-gelu" else second or first
    field = name if fields["dense_act_fn"] is None else "dense_act_fn"
    activation = activation_of({name: theirs, "dense_act_fn": fields["dense_act_fn"]}, field)
    gated = bool(second) if fields["is_gated_act"] is None else bool(fields["is_gated_act"])
    return activation, gated


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
        "feed_forward_proj": _feed_forward_name(config),
        "dense_act_fn": _public(config),
        "is_gated_act": config.gated,
        "layer_norm_epsilon": config.norm_epsilon,
        "dropout_rate": config.dropout,
        # transformers ties what is equal in the file, and takes this for a sign of scaled outputs
        # where the field below is absent.
        "tie_word_embeddings": config.tied or not config.shared_embedding,
        "scale_decoder_outputs": config.output_scale != 1.0,
        "eos_token_id": one_or_all(config.eos),
        "pad_token_id": config.pad,
        "decoder_start_token_id": config.start,
    }


def _public(config: ModelConfig) -> str:
    """T5's name of the activation: gelu_new is the one by tanh."""
    return "gelu_new" if config.activation == "gelu_tanh" else public_activation(config)


def _feed_forward_name(config: ModelConfig) -> str:
    if config.gated and config.activation == "gelu_tanh":
        return "gated-gelu"
    return f"gated-{_public(config)}" if config.gated else _public(config)


def names(config: ModelConfig) -> dict[str, Source | str]:
    """Return the place of each of our tensors."""
    places = embedding_names(config, "")
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
    return places


FAMILY = Family(
    name="t5",
    model_types=("t5",),
    read_fields=read,
    write=write,
    names=names,
    rules=RULES,
    ignored={
        "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight":
            "cross-attention has no positions, and transformers passes over it",
        "lm_head.weight": "the same numbers as the embedding, where the two are tied",
    },
)  # fmt: skip
