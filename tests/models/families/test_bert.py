from __future__ import annotations

from typing import Any

import pytest

from clearhead.errors import CheckpointError
from clearhead.models.families.bert import FAMILY, label_fields, label_names_of

FIELDS: dict[str, Any] = {
    "model_type": "bert", "vocab_size": 11, "hidden_size": 6, "intermediate_size": 17,
    "num_hidden_layers": 2, "num_attention_heads": 3, "max_position_embeddings": 13,
}  # fmt: skip
LABELLED = FIELDS | {
    "architectures": ["BertForSequenceClassification"], "id2label": {"0": "no", "1": "yes"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("architecture", "head"),
    [
        ("BertModel", "none"),
        ("BertForMaskedLM", "masked"),
        ("BertForPreTraining", "masked"),
        ("BertForSequenceClassification", "classification"),
    ],
)
def test_the_architecture_names_the_head(architecture: str, head: str) -> None:
    fields = FIELDS | {"architectures": [architecture]}
    config = FAMILY.read(fields)
    assert config.head == head
    assert FAMILY.read(FAMILY.write(config)).resolved() == config.resolved()


def test_labels() -> None:
    config = FAMILY.read(LABELLED)
    assert (config.labels, config.label_names) == (2, ("no", "yes"))
    assert label_fields(config)["label2id"] == {"no": 0, "yes": 1}
    assert label_fields(FAMILY.read(FIELDS)) == {}
    numbered = ("LABEL_0", "LABEL_1")
    assert label_names_of({}, "classification") == numbered
    assert label_names_of({}, "masked") == ()
    assert label_names_of({"num_labels": 3}, "classification") == (*numbered, "LABEL_2")
    with pytest.raises(CheckpointError, match='id2label must name the labels "0", "1"'):
        label_names_of({"id2label": {"0": "no", "2": "yes"}}, "classification")
    for wrong in (0, 10**9, "three", True, [3]):
        with pytest.raises(CheckpointError, match="num_labels must be 1 … 1000000; got"):
            label_names_of({"num_labels": wrong}, "classification")


def test_what_is_not_known() -> None:
    for field in ({"is_decoder": True}, {"position_embedding_type": "relative_key"}):
        with pytest.raises(
            CheckpointError, match=rf"{next(iter(field))} is .*BERT .* is not known"
        ):
            FAMILY.read(FIELDS | field)
    for head in ("BertForNextSentencePrediction", "BertForTokenClassification", "BertLMHeadModel"):
        with pytest.raises(
            CheckpointError, match=f"architectures names {head}, a head that is not"
        ):
            FAMILY.read(FIELDS | {"architectures": [head]})


def test_names_of_the_heads() -> None:
    masked = FAMILY.sources(FAMILY.read(FIELDS | {"architectures": ["BertForMaskedLM"]}))
    assert masked["head.vocabulary.bias"].name == "cls.predictions.bias"
    assert FAMILY.sources(FAMILY.read(LABELLED))["head.labels.weight"].name == "classifier.weight"
