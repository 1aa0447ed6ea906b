"""DistilBERT (Sanh et al. 2019): BERT without segments, under other names."""

from __future__ import annotations

from typing import Any

from clearhead.models.config import ModelConfig
from clearhead.models.families import bert
from clearhead.models.families.family import (
    Family,
    Fields,
    Source,
    activation_named,
    public_activation,
    required,
    with_bias,
)


def read(fields: Fields) -> ModelConfig:
    """Return our config for the fields of a config.json."""
    vocab, model, hidden, layers, heads, context = required(
        fields, "vocab_size", "dim", "hidden_dim", "n_layers", "n_heads", "max_position_embeddings"
    )
    head = bert.head_of(fields)
    label_names = bert.label_names_of(fields)
    return ModelConfig(
        kind="encoder",
        family="distilbert",
        head=head,
        vocab=vocab,
        context=context,
        model=model,
        layers=layers,
        heads=heads,
        feed_forward=hidden,
        labels=len(label_names),
        label_names=label_names,
        classifier="relu",
        positions="learned",
        attention_bias=True,
        attention_output_bias=True,
        activation=activation_named(fields.get("activation", "gelu")),
        feed_forward_bias=True,
        norm="layer",
        norm_place="after",
        norm_epsilon=1e-12,
        embedding_norm=True,
        dropout=float(fields.get("dropout", 0.0)),
        pad=fields.get("pad_token_id"),
    )


def write(config: ModelConfig) -> dict[str, Any]:
    """Return the fields of a config.json for our config."""
    endings = {"masked": "ForMaskedLM", "classification": "ForSequenceClassification"}
    return {
        "model_type": "distilbert",
        "architectures": ["DistilBert" + endings.get(config.head, "Model")],
        "vocab_size": config.vocab,
        "dim": config.model,
        "hidden_dim": config.feed_forward,
        "n_layers": config.layers,
        "n_heads": config.heads,
        "max_position_embeddings": config.context,
        "activation": public_activation(config),
        "dropout": config.dropout,
        "attention_dropout": config.dropout,
        "pad_token_id": config.pad,
        **bert.label_fields(config),
    }


def names(config: ModelConfig) -> dict[str, Source | str]:
    """Return the place of each of our tensors."""
    block, layer = "stack.blocks.{i}", "distilbert.transformer.layer.{i}"
    places: dict[str, Source | str] = {
        "stack.embedding.tokens.weight": "distilbert.embeddings.word_embeddings.weight",
        "stack.embedding.positions.weight": "distilbert.embeddings.position_embeddings.weight",
    }
    places |= with_bias(
        {
            "stack.embedding.norm": "distilbert.embeddings.LayerNorm",
            f"{block}.attention.query": f"{layer}.attention.q_lin",
            f"{block}.attention.key": f"{layer}.attention.k_lin",
            f"{block}.attention.value": f"{layer}.attention.v_lin",
            f"{block}.attention.output": f"{layer}.attention.out_lin",
            f"{block}.attention_residual.after": f"{layer}.sa_layer_norm",
            f"{block}.feed_forward.up": f"{layer}.ffn.lin1",
            f"{block}.feed_forward.down": f"{layer}.ffn.lin2",
            f"{block}.feed_forward_residual.after": f"{layer}.output_layer_norm",
        }
    )
    if config.head == "masked":
        places |= with_bias({"head.dense": "vocab_transform", "head.norm": "vocab_layer_norm"})
        places["head.vocabulary.bias"] = "vocab_projector.bias"
    if config.head == "classification":
        places |= with_bias({"head.dense": "pre_classifier", "head.labels": "classifier"})
    return places


FAMILY = Family(
    name="distilbert",
    model_types=("distilbert",),
    read=read,
    write=write,
    names=names,
    prefix="distilbert.",
    ignored=("vocab_projector.weight",),
)
