"""BERT (Devlin et al. 2019) and models of its shape, MiniLM among them."""

from __future__ import annotations

from typing import Any

from clearhead.errors import CheckpointError
from clearhead.models.config import Head, ModelConfig
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
        fields, "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
        "num_attention_heads", "max_position_embeddings",
    )  # fmt: skip
    if fields.get("position_embedding_type", "absolute") != "absolute" or fields.get("is_decoder"):
        raise CheckpointError("BERT with relative positions or as a decoder is not known.")
    head = head_of(fields)
    label_names = label_names_of(fields)
    return ModelConfig(
        kind="encoder",
        family="bert",
        head=head,
        vocab=vocab,
        context=context,
        model=model,
        layers=layers,
        heads=heads,
        feed_forward=hidden,
        labels=len(label_names),
        label_names=label_names,
        segments=fields.get("type_vocab_size", 2),
        positions="learned",
        attention_bias=True,
        attention_output_bias=True,
        activation=activation_named(fields.get("hidden_act", "gelu")),
        feed_forward_bias=True,
        norm="layer",
        norm_place="after",
        norm_epsilon=fields.get("layer_norm_eps", 1e-12),
        embedding_norm=True,
        dropout=float(fields.get("hidden_dropout_prob", 0.0)),
        pad=fields.get("pad_token_id"),
    )


def head_of(fields: Fields) -> Head:
    """Return the head that the architecture's name implies."""
    architecture = (fields.get("architectures") or [""])[0]
    for ending, head in (
        ("ForMaskedLM", "masked"),
        ("ForPreTraining", "masked"),
        ("ForSequenceClassification", "classification"),
    ):
        if architecture.endswith(ending):
            return head  # type: ignore[return-value]
    return "none"


def label_names_of(fields: Fields) -> tuple[str, ...]:
    """Return the names of a classifier's labels; without id2label there are two."""
    if head_of(fields) != "classification":
        return ()
    given = fields.get("id2label") or {"0": "LABEL_0", "1": "LABEL_1"}
    names = []
    if isinstance(given, dict):
        names = [given.get(str(number)) for number in range(len(given))]
    if not names or not all(isinstance(name, str) for name in names):
        raise CheckpointError(
            f'config.json: id2label must name the labels "0", "1", …; got {str(given)[:100]}.'
        )
    return tuple(map(str, names))


def label_fields(config: ModelConfig) -> dict[str, Any]:
    """Labels by number and by name, for a classifier's config.json."""
    if config.head != "classification":
        return {}
    names = config.label_names or [f"LABEL_{number}" for number in range(config.labels)]
    return {
        "id2label": {str(number): name for number, name in enumerate(names)},
        "label2id": {name: number for number, name in enumerate(names)},
    }


def write(config: ModelConfig) -> dict[str, Any]:
    """Return the fields of a config.json for our config."""
    endings = {"masked": "ForMaskedLM", "classification": "ForSequenceClassification"}
    return {
        "model_type": "bert",
        "architectures": ["Bert" + endings.get(config.head, "Model")],
        "vocab_size": config.vocab,
        "hidden_size": config.model,
        "intermediate_size": config.feed_forward,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "max_position_embeddings": config.context,
        "type_vocab_size": config.segments,
        "hidden_act": public_activation(config),
        "layer_norm_eps": config.norm_epsilon,
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.dropout,
        "pad_token_id": config.pad,
        **label_fields(config),
    }


def names(config: ModelConfig) -> dict[str, Source | str]:
    """Return the place of each of our tensors."""
    block, layer = "stack.blocks.{i}", "bert.encoder.layer.{i}"
    places: dict[str, Source | str] = {
        "stack.embedding.tokens.weight": "bert.embeddings.word_embeddings.weight",
        "stack.embedding.positions.weight": "bert.embeddings.position_embeddings.weight",
        "stack.embedding.segments.weight": "bert.embeddings.token_type_embeddings.weight",
    }
    places |= with_bias(
        {
            "stack.embedding.norm": "bert.embeddings.LayerNorm",
            f"{block}.attention.query": f"{layer}.attention.self.query",
            f"{block}.attention.key": f"{layer}.attention.self.key",
            f"{block}.attention.value": f"{layer}.attention.self.value",
            f"{block}.attention.output": f"{layer}.attention.output.dense",
            f"{block}.attention_residual.after": f"{layer}.attention.output.LayerNorm",
            f"{block}.feed_forward.up": f"{layer}.intermediate.dense",
            f"{block}.feed_forward.down": f"{layer}.output.dense",
            f"{block}.feed_forward_residual.after": f"{layer}.output.LayerNorm",
        }
    )
    if config.head == "masked":
        places |= with_bias(
            {
                "head.dense": "cls.predictions.transform.dense",
                "head.norm": "cls.predictions.transform.LayerNorm",
            }
        )
        places["head.vocabulary.bias"] = "cls.predictions.bias"
    if config.head == "classification":
        places |= with_bias({"head.dense": "bert.pooler.dense", "head.labels": "classifier"})
    return places


FAMILY = Family(
    name="bert",
    model_types=("bert",),
    read=read,
    write=write,
    names=names,
    prefix="bert.",
    older={"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"},
    ignored=(
        "embeddings.position_ids", "pooler.dense.weight", "pooler.dense.bias",
        "cls.predictions.decoder.weight", "cls.predictions.decoder.bias",
        "cls.seq_relationship.weight", "cls.seq_relationship.bias",
    ),
)  # fmt: skip
