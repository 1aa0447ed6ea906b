"""BART (Lewis et al. 2020) and Marian (Junczys-Dowmunt et al. 2018): the paper's Transformer."""

from __future__ import annotations

from typing import Any

from clearhead.errors import CheckpointError
from clearhead.models.config import ModelConfig
from clearhead.models.families.family import (
    Family,
    Fields,
    Source,
    activation_named,
    attention_names,
    one_or_all,
    public_activation,
    required,
    token_ids,
    with_bias,
)


def read(fields: Fields) -> ModelConfig:
    """Return our config for the fields of a config.json."""
    vocab, model, hidden, layers, encoder_layers, heads, context = required(
        fields, "vocab_size", "d_model", "decoder_ffn_dim", "decoder_layers", "encoder_layers",
        "decoder_attention_heads", "max_position_embeddings",
    )  # fmt: skip
    marian = fields["model_type"] == "marian"
    if fields.get("encoder_attention_heads", heads) != heads or (
        fields.get("encoder_ffn_dim", hidden) != hidden
    ):
        raise CheckpointError(
            "encoder and decoder of different heads or feed-forward are not known."
        )
    if fields.get("decoder_vocab_size", vocab) not in (None, vocab) or not fields.get(
        "share_encoder_decoder_embeddings", True
    ):
        raise CheckpointError("separate vocabularies for source and target are not known.")
    return ModelConfig(
        kind="encoder-decoder",
        family="bart",
        vocab=vocab,
        context=context,
        model=model,
        layers=layers,
        encoder_layers=encoder_layers,
        heads=heads,
        feed_forward=hidden,
        positions="sinusoidal-halves" if marian else "learned",
        position_offset=0 if marian else 2,
        attention_bias=True,
        attention_output_bias=True,
        activation=activation_named(fields.get("activation_function", "gelu")),
        feed_forward_bias=True,
        norm="layer",
        norm_place="after",
        embedding_norm=not marian,
        embedding_scale=model**0.5 if fields.get("scale_embedding") else 1.0,
        tied=bool(fields.get("tie_word_embeddings", True)),
        output_bias=True,
        dropout=float(fields.get("dropout", 0.0)),
        bos=fields.get("bos_token_id"),
        eos=token_ids(fields.get("eos_token_id")),
        pad=fields.get("pad_token_id"),
        start=fields.get("decoder_start_token_id"),
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
        "tie_word_embeddings": config.tied,
        "dropout": config.dropout,
        "bos_token_id": config.bos,
        "eos_token_id": one_or_all(config.eos),
        "pad_token_id": config.pad,
        "decoder_start_token_id": config.start,
        "forced_eos_token_id": None,
    }


def names(config: ModelConfig) -> dict[str, Source | str]:
    """Return the place of each of our tensors."""
    places: dict[str, Source | str] = {
        "encoder.embedding.tokens.weight": "model.shared.weight",
        "head.bias": Source("final_logits_bias", row=True),
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
    if not config.tied:
        places["head.weight"] = "lm_head.weight"
    return places


FAMILY = Family(
    name="bart",
    model_types=("bart", "marian"),
    read=read,
    write=write,
    names=names,
    prefix="model.",
    ignored=("embed_positions.weight", "embed_tokens.weight", "lm_head.weight"),
)
