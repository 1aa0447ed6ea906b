from __future__ import annotations

from typing import Any

import pytest

from clearhead.errors import CheckpointError
from clearhead.models.families.llama import FAMILY

FIELDS: dict[str, Any] = {
    "model_type": "llama", "vocab_size": 11, "hidden_size": 12, "intermediate_size": 17,
    "num_hidden_layers": 3, "num_attention_heads": 2, "num_key_value_heads": 2,
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "bias", "output_bias", "norm", "window"),
    [
        ("llama", False, False, False, None),
        ("mistral", False, False, False, 4096),
        ("qwen2", True, False, False, None),
        ("qwen3", False, False, True, None),
    ],
)
def test_what_distinguishes_the_relatives(
    kind: str, bias: bool, output_bias: bool, norm: bool, window: int | None
) -> None:
    config = FAMILY.read(FIELDS | {"model_type": kind, "head_dim": 6})
    assert config.attention_bias == bias
    assert config.attention_output_bias == output_bias
    assert config.attention_norm == norm
    assert config.window == window
    written = FAMILY.write(config)
    assert written["model_type"] == kind
    assert FAMILY.read(written).resolved() == config.resolved()


def test_windows_of_qwen() -> None:
    windows = {"model_type": "qwen2", "use_sliding_window": True, "sliding_window": 5}
    config = FAMILY.read(FIELDS | windows | {"max_window_layers": 1})
    assert config.window_layers == (False, True, True)
    kinds = ["sliding_attention", "full_attention", "sliding_attention"]
    assert FAMILY.read(FIELDS | windows | {"layer_types": kinds}).window_layers == (
        True, False, True,
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["llama", "mistral", "qwen2", "qwen3"])
def test_kinds_of_layers_are_obeyed_or_refused(kind: str) -> None:
    full, sliding = ["full_attention"] * 3, ["sliding_attention"] * 3
    fields = FIELDS | {"model_type": kind, "sliding_window": None}
    assert FAMILY.read(fields | {"layer_types": full}).window is None
    with pytest.raises(CheckpointError, match="layer_types names sliding_attention, and sliding_"):
        FAMILY.read(fields | {"layer_types": sliding})
    with pytest.raises(CheckpointError, match="layer_types names 'chunked_attention', which is"):
        FAMILY.read(fields | {"layer_types": ["chunked_attention"] * 3})
    if kind == "mistral":
        windowed = fields | {"sliding_window": 5}
        assert FAMILY.read(windowed | {"layer_types": sliding}).window == 5
        for kinds in (full, sliding[:2] + full[:1]):
            with pytest.raises(CheckpointError, match="layer_types mixes kinds of layers"):
                FAMILY.read(windowed | {"layer_types": kinds})


def test_names_follow_the_config() -> None:
    config = FAMILY.read(FIELDS | {"model_type": "qwen3", "tie_word_embeddings": True})
    sources = FAMILY.sources(config)
    assert sources["stack.blocks.2.attention.key.weight"].name == (
        "model.layers.2.self_attn.k_proj.weight"
    )
    assert "stack.blocks.0.attention.query_norm.weight" in sources
    assert "head.weight" not in sources
    assert FAMILY.sources(config.changed(tied=False))["head.weight"].name == "lm_head.weight"


def test_missing_fields() -> None:
    with pytest.raises(CheckpointError, match="lacks vocab_size, hidden_size"):
        FAMILY.read({"model_type": "llama"})
