"""BERT (Devlin et al. 2019) and models of its shape, MiniLM among them."""

from __future__ import annotations

from typing import Any

from clearhead.errors import CheckpointError
from clearhead.models.config import Head, ModelConfig
from clearhead.models.families.common_fields import PLAIN, family_rules
from clearhead.models.families.family import Family, Source, with_bias
from clearhead.models.families.field_rules import REQUIRED, Fields, Refusal
from clearhead.models.families.field_values import (
    activation_of,
    apart,
    head_of,
    public_activation,
)

HEADS: dict[str, Head] = {
    "Model": "none",
    "ForMaskedLM": "masked",
    "ForPreTraining": "masked",
    "ForSequenceClassification": "classification",
}
MOST_LABELS = 1_000_000
LABELS: dict[str, Any] = {"id2label": None, "num_labels": None}
HARMLESS = {
    "label2id": "id2label says the same the other way round",
    "is_causal": "an encoder sees the whole text, whatever the field says",
}
POOLER = "of a pooler that no version builds"
RULES = {
    "bert": family_rules(
        {
            **dict.fromkeys(
                ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
                 "num_attention_heads", "max_position_embeddings"), REQUIRED,
            ),
            "type_vocab_size": 2, "hidden_act": "gelu", "layer_norm_eps": 1e-12,
            "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1,
            "classifier_dropout": None, "pad_token_id": 0, "tie_word_embeddings": True, **LABELS,
        },
        HARMLESS | dict.fromkeys(
            ("directionality", "pooler_fc_size", "pooler_num_attention_heads",
             "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type"), POOLER,
        ),
        {
            **PLAIN,
            "embedding_size": Refusal("embeddings of another width are not known", (None,)),
            "is_decoder": Refusal("BERT as a decoder is not known"),
            "add_cross_attention": Refusal("BERT with cross-attention is not known"),
            "position_embedding_type": Refusal(
                "BERT with relative positions is not known", (None, "absolute")
            ),
        },
    )
}  # fmt: skip


def read(fields: Fields) -> ModelConfig:
    """Return our config for the fields of a config.json."""
    head = head_of(fields, named_heads("Bert"))
    label_names = label_names_of(fields, head)
    dropout, of_classifier = float(fields["hidden_dropout_prob"]), fields["classifier_dropout"]
    return ModelConfig(
        kind="encoder",
        family="bert",
        head=head,
        vocab=fields["vocab_size"],
        context=fields["max_position_embeddings"],
        model=fields["hidden_size"],
        layers=fields["num_hidden_layers"],
        heads=fields["num_attention_heads"],
        feed_forward=fields["intermediate_size"],
        labels=len(label_names),
        label_names=label_names,
        segments=fields["type_vocab_size"],
        positions="learned",
        attention_bias=True,
        attention_output_bias=True,
        activation=activation_of(fields, "hidden_act"),
        feed_forward_bias=True,
        norm="layer",
        norm_place="after",
        norm_epsilon=fields["layer_norm_eps"],
        embedding_norm=True,
        tied=bool(fields["tie_word_embeddings"]),
        dropout=dropout,
        attention_dropout=apart(float(fields["attention_probs_dropout_prob"]), dropout),
        head_dropout=head_dropout(head, dropout if of_classifier is None else of_classifier),
        pad=fields["pad_token_id"],
    )


def named_heads(kind: str) -> dict[str, Head]:
    """The heads by the names of transformers' classes."""
    return {kind + ending: head for ending, head in HEADS.items()}


def head_dropout(head: Head, dropout: float) -> float:
    """The dropout before the labels, where there are any."""
    return float(dropout) if head == "classification" else 0.0


def label_names_of(fields: Fields, head: Head) -> tuple[str, ...]:
    """Return the names of a classifier's labels: by name, or numbered; two without either."""
    if head != "classification":
        return ()
    given = fields.get("id2label")
    if not given:
        count = 2 if fields.get("num_labels") is None else fields["num_labels"]
        if type(count) is not int or not 1 <= count <= MOST_LABELS:
            raise CheckpointError(
                f"config.json: num_labels must be 1 … {MOST_LABELS}; got {str(count)[:60]}."
            )
        return tuple(f"LABEL_{number}" for number in range(count))
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
        "attention_probs_dropout_prob": config.dropout_of("attention"),
        "classifier_dropout": apart(config.head_dropout, config.dropout),
        "tie_word_embeddings": config.tied,
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
        # The bias of the decoder is the one that counts, where a file has both.
        biases = ("cls.predictions.decoder.bias", "cls.predictions.bias")
        places["head.vocabulary.bias"] = Source(biases[config.tied], search=biases)
        if not config.tied:
            places["head.vocabulary.weight"] = "cls.predictions.decoder.weight"
    if config.head == "classification":
        places |= with_bias({"head.dense": "bert.pooler.dense", "head.labels": "classifier"})
    return places


FAMILY = Family(
    name="bert",
    model_types=("bert",),
    read_fields=read,
    write=write,
    names=names,
    rules=RULES,
    prefix="bert.",
    older={"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"},
    ignored={
        "embeddings.position_ids": "0, 1, 2 …",
        "pooler.dense.weight": "it only feeds heads that this model does not have",
        "pooler.dense.bias": "it only feeds heads that this model does not have",
        "cls.predictions.decoder.weight": "the same numbers as the embedding",
    },
    dropped=("cls.seq_relationship.weight", "cls.seq_relationship.bias"),
)
