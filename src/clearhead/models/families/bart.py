"""BART (Lewis et al. 2020) and Marian (Junczys-Dowmunt et al. 2018): the paper's Transformer."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from clearhead.attention.sinusoidal import sinusoidal_positions
from clearhead.errors import CheckpointError
from clearhead.models.config import ModelConfig
from clearhead.models.families.common_fields import BOTH_SIDES, PLAIN, family_rules
from clearhead.models.families.family import Family, Source, attention_names, with_bias
from clearhead.models.families.field_rules import REQUIRED, FieldRules, Fields, Refusal
from clearhead.models.families.field_values import (
    activation_of,
    apart,
    head_of,
    one_or_all,
    public_activation,
    token_ids,
)

READ: dict[str, Any] = {
    **dict.fromkeys(
        ("vocab_size", "d_model", "encoder_ffn_dim", "decoder_ffn_dim", "encoder_layers",
         "decoder_layers", "encoder_attention_heads", "decoder_attention_heads",
         "max_position_embeddings"), REQUIRED,
    ),
    "activation_function": "gelu", "dropout": 0.1, "attention_dropout": 0.0,
    "activation_dropout": 0.0, "scale_embedding": False, "tie_word_embeddings": True,
}  # fmt: skip
BART = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2}
MARIAN = {
    "pad_token_id": 58100, "bos_token_id": None, "eos_token_id": 0, "decoder_start_token_id": 58100,
    "decoder_vocab_size": None, "share_encoder_decoder_embeddings": True,
}  # fmt: skip
LAYER_DROP = "layers are dropped in training only, and training here drops none"


def _rules(read: dict[str, Any], **switches: Any) -> FieldRules:
    """``switches`` are those of older versions, each with the value that is built in today."""
    why = "older versions computed something else then, which is not known"
    return family_rules(
        READ | read,
        {
            **dict.fromkeys(("encoder_layerdrop", "decoder_layerdrop"), LAYER_DROP),
            "classif_dropout": "only a classification head has it",
        },
        PLAIN | BOTH_SIDES | {
            "is_decoder": Refusal("a decoder without an encoder is not known in this type"),
            **{name: Refusal(why, (None, value)) for name, value in switches.items()},
        },
        aliases={
            "hidden_size": "d_model", "num_attention_heads": "encoder_attention_heads",
            "num_hidden_layers": "encoder_layers",
        },
    )  # fmt: skip


OLDER = {"normalize_before": False, "add_final_layer_norm": False, "add_bias_logits": False,
         "do_blenderbot_90_layernorm": False}  # fmt: skip
RULES = {
    "bart": _rules(BART, normalize_embedding=True, static_position_embeddings=False, **OLDER)
    | FieldRules({}, {"extra_pos_embeddings": "BART's tables have two more rows in any case"}),
    "marian": _rules(MARIAN, normalize_embedding=False, static_position_embeddings=True, **OLDER)
    | FieldRules({}, {"extra_pos_embeddings": "waves need no table, and so no more rows of it"}),
}


def read(fields: Fields) -> ModelConfig:
    """Return our config for the fields of a config.json."""
    marian, model = fields["model_type"] == "marian", fields["d_model"]
    with_head = "MarianMTModel" if marian else "BartForConditionalGeneration"
    head_of(fields, dict.fromkeys((with_head, "MarianModel" if marian else "BartModel")))
    _check_sides(fields)
    tied, dropout = bool(fields["tie_word_embeddings"]), float(fields["dropout"])
    return ModelConfig(
        kind="encoder-decoder",
        family="bart",
        vocab=fields["vocab_size"],
        context=fields["max_position_embeddings"],
        model=model,
        layers=fields["decoder_layers"],
        encoder_layers=fields["encoder_layers"],
        heads=fields["decoder_attention_heads"],
        feed_forward=fields["decoder_ffn_dim"],
        positions="sinusoidal-halves" if marian else "learned",
        position_offset=0 if marian else 2,
        attention_bias=True,
        attention_output_bias=True,
        activation=activation_of(fields, "activation_function"),
        feed_forward_bias=True,
        norm="layer",
        norm_place="after",
        embedding_norm=not marian,
        embedding_scale=model**0.5 if fields["scale_embedding"] else 1.0,
        tied=tied,
        shared_embedding=tied and fields.get("share_encoder_decoder_embeddings") is not False,
        output_bias=True,
        dropout=dropout,
        attention_dropout=apart(float(fields["attention_dropout"]), dropout),
        activation_dropout=float(fields["activation_dropout"]),
        bos=fields["bos_token_id"],
        eos=token_ids(fields["eos_token_id"]),
        pad=fields["pad_token_id"],
        start=fields["decoder_start_token_id"],
    )


def _check_sides(fields: Fields) -> None:
    """One config describes both stacks here, so they must be of one width."""
    pairs = [(f"encoder_{name}", f"decoder_{name}") for name in ("attention_heads", "ffn_dim")]
    if fields.get("decoder_vocab_size") is not None:
        pairs.append(("vocab_size", "decoder_vocab_size"))
    for one, other in pairs:
        if fields[one] != fields[other]:
            raise CheckpointError(
                f"config.json: {one} is {fields[one]} and {other} {fields[other]}: an encoder and "
                "a decoder that differ there are not known."
            )


def write(config: ModelConfig) -> dict[str, Any]:
    """Return the fields of a config.json for our config."""
    marian = config.positions == "sinusoidal-halves"
    sizes = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in (
            ("ffn_dim", config.feed_forward),
            ("attention_heads", config.heads),
            ("layers", config.layers if side == "decoder" else config.encoder_layers),
        )
    }
    return {
        "model_type": "marian" if marian else "bart",
        "architectures": ["MarianMTModel" if marian else "BartForConditionalGeneration"],
        "is_encoder_decoder": True,
        "vocab_size": config.vocab,
        "d_model": config.model,
        "max_position_embeddings": config.context,
        **sizes,
        **({"decoder_vocab_size": config.vocab} if marian else {}),
        "activation_function": public_activation(config),
        "scale_embedding": config.embedding_scale != 1.0,
        # Where only some of the three are one, the file shows it: transformers unties what differs.
        "tie_word_embeddings": config.tied or config.shared_embedding,
        "dropout": config.dropout,
        "attention_dropout": config.dropout_of("attention"),
        "activation_dropout": config.activation_dropout,
        "bos_token_id": config.bos,
        "eos_token_id": one_or_all(config.eos),
        "pad_token_id": config.pad,
        "decoder_start_token_id": config.start,
        "forced_eos_token_id": None,
    }


def names(config: ModelConfig) -> dict[str, Source | str]:
    """Return the place of each of our tensors."""
    places = embedding_names(config, "model.") | {
        "head.bias": Source("final_logits_bias", row=True, optional=True)
    }
    for side in ("encoder", "decoder"):
        block, layer = f"{side}.blocks.{{i}}", f"model.{side}.layers.{{i}}"
        if config.positions == "learned":
            places[f"{side}.embedding.positions.weight"] = f"model.{side}.embed_positions.weight"
        if config.embedding_norm:
            places |= with_bias({f"{side}.embedding.norm": f"model.{side}.layernorm_embedding"})
        attentions = [("attention", "self_attn")]
        if side == "decoder":
            attentions.append(("cross_attention", "encoder_attn"))
        for ours, theirs in attentions:
            places |= attention_names(
                f"{block}.{ours}", f"{layer}.{theirs}.", "q_proj k_proj v_proj out_proj",
                bias=True, output_bias=True,
            )  # fmt: skip
            residual = f"{block}.{ours.removesuffix('_attention')}_residual.after"
            places |= with_bias({residual: f"{layer}.{theirs}_layer_norm"})
        places |= with_bias(
            {
                f"{block}.feed_forward.up": f"{layer}.fc1",
                f"{block}.feed_forward.down": f"{layer}.fc2",
                f"{block}.feed_forward_residual.after": f"{layer}.final_layer_norm",
            }
        )
    return places


def embedding_names(config: ModelConfig, prefix: str) -> dict[str, Source | str]:
    """The token embeddings of both sides and the output matrix, which may be one in the file."""
    shared, output = f"{prefix}shared.weight", "lm_head.weight"
    own = {side: f"{prefix}{side}.embed_tokens.weight" for side in ("encoder", "decoder")}
    places: dict[str, Source | str] = {}
    for side, other in (("encoder", "decoder"), ("decoder", "encoder")):
        if config.shared_embedding and side == "decoder":
            continue
        search = (own[side], shared, own[other], output)
        one = config.shared_embedding or (config.tied and side == "decoder")
        name = shared if one else own[side]
        places[f"{side}.embedding.tokens.weight"] = Source(name, search=search)
    if not config.tied:
        places["head.weight"] = Source(output, search=(output, shared, own["decoder"]))
    return places


def waves(held: Tensor) -> Tensor:
    """Marian's positions, which old checkpoints hold."""
    return sinusoidal_positions(torch.arange(held.shape[0]), held.shape[1], layout="halves")


FAMILY = Family(
    name="bart",
    model_types=("bart", "marian"),
    read_fields=read,
    write=write,
    names=names,
    rules=RULES,
    prefix="model.",
    ignored={
        "coder.version": "the number of an old version of the format",
        "lm_head.weight": "the same numbers as the embedding, where the two are tied",
    },
    constants={"embed_positions.weight": waves},
)
