from __future__ import annotations

from typing import Any

import pytest

from clearhead.models.families.distilbert import FAMILY

FIELDS: dict[str, Any] = {
    "model_type": "distilbert", "vocab_size": 11, "dim": 6, "hidden_dim": 17, "n_layers": 2,
    "n_heads": 3, "max_position_embeddings": 13,
}  # fmt: skip


@pytest.mark.parametrize("ending", ["Model", "ForMaskedLM", "ForSequenceClassification"])
def test_read_and_written(ending: str) -> None:
    config = FAMILY.read(FIELDS | {"architectures": [f"DistilBert{ending}"]})
    assert config.segments == 0
    assert config.classifier == "relu"
    written = FAMILY.write(config)
    assert written["architectures"] == [f"DistilBert{ending}"]
    assert FAMILY.read(written).resolved() == config.resolved()


def test_names() -> None:
    sources = FAMILY.sources(FAMILY.read(FIELDS))
    assert sources["stack.blocks.1.attention.output.bias"].name == (
        "distilbert.transformer.layer.1.attention.out_lin.bias"
    )
    assert not any(ours.startswith("head.") for ours in sources)
