"""DistilBERT (Sanh et al. 2019): BERT without segments, under other names."""

from __future__ import annotations

from typing import Any

from clearhead.models.config import ModelConfig
from clearhead.models.families import bert
from clearhead.models.families.common_fields import PLAIN, family_rules
from clearhead.models.families.family import Family, Source, with_bias
from clearhead.models.families.field_rules import REQUIRED, Fields
from clearhead.models.families.field_values import (
    activation_of,
    apart,
    head_of,
    public_activation,
)

RULES = {
    "distilbert": family_rules(
        {
            **dict.fromkeys(
                ("vocab_size", "dim", "hidden_dim", "n_layers", "n_heads",
                 "max_position_embeddings"), REQUIRED,
            ),
            "activation": "gelu", "dropout": 0.1, "attention_dropout": 0.1,
            "seq_classif_dropout": 0.2, "pad_token_id": 0, "tie_word_embeddings": True,
            **bert.LABELS,
        },
        bert.HARMLESS | {
            "sinusoidal_pos_embds": "the file holds the positions, whatever they started as",
            "qa_dropout": "only a head for questions has it",
            "tie_weights_": "tie_word_embeddings decides, as in transformers",
        },
        PLAIN,
        aliases={"hidden_size": "dim", "num_attention_heads": "n_heads",
                 "num_hidden_layers": "n_layers"},
    )
}  # fmt: skip


def read(fields: Fields) -> ModelConfig:
    """Return our config for the fields of a config.json."""
    head = head_of(fields, bert.named_heads("DistilBert"))
    label_names = bert.label_names_of(fields, head)
    dropout = float(fields["dropout"])
    return ModelConfig(
        kind="encoder",
        family="distilbert",
        head=head,
        vocab=fields["vocab_size"],
        context=fields["max_position_embeddings"],
        model=fields["dim"],
        layers=fields["n_layers"],
        heads=fields["n_heads"],
        feed_forward=fields["hidden_dim"],
        labels=len(label_names),
        label_names=label_names,
        classifier="relu",
        positions="learned",
        attention_bias=True,
        attention_output_bias=True,
        activation=activation_of(fields, "activation"),
        feed_forward_bias=True,
        norm="layer",
        norm_place="after",
        norm_epsilon=1e-12,
        embedding_norm=True,
        tied=bool(fields["tie_word_embeddings"]),
        dropout=dropout,
        attention_dropout=apart(float(fields["attention_dropout"]), dropout),
        head_dropout=bert.head_dropout(head, fields["seq_classif_dropout"]),
        pad=fields["pad_token_id"],
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
        "attention_dropout": config.dropout_of("attention"),
        "seq_classif_dropout": config.head_dropout,
        "tie_word_embeddings": config.tied,
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
        if not config.tied:
            places["head.vocabulary.weight"] = "vocab_projector.weight"
    if config.head == "classification":
        places |= with_bias({"head.dense": "pre_classifier", "head.labels": "classifier"})
    return places


FAMILY = Family(
    name="distilbert",
    model_types=("distilbert",),
    read_fields=read,
    write=write,
    names=names,
    rules=RULES,
    prefix="distilbert.",
    ignored={
        "embeddings.position_ids": "0, 1, 2 …",
        "vocab_projector.weight": "the same numbers as the embedding",
    },
)
