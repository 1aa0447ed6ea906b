"""adapter_config.json: every field is read, harmless or refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from clearhead.checkpoints.adapters.config_file import HARMLESS, READ, read_adapter_config
from clearhead.errors import CheckpointError

FIELDS: dict[str, Any] = {
    "peft_type": "LORA", "base_model_name_or_path": "some/base", "r": 8, "lora_alpha": 16,
}  # fmt: skip
# Every field of LoraConfig in PEFT 0.21 that changes what is computed and is not read here.
OTHERS = (
    "modules_to_save", "use_dora", "lora_bias", "layer_replication", "trainable_token_indices",
    "target_parameters", "use_qalora", "megatron_config", "alora_invocation_tokens",
    "arrow_config",
)  # fmt: skip


def read(folder: Path, **changes: Any) -> Any:
    (folder / "adapter_config.json").write_text(json.dumps(FIELDS | changes))
    return read_adapter_config(folder)


def test_scales(tmp_path: Path) -> None:
    config = read(tmp_path, alpha_pattern={"q_proj": 4, "layers.1.v_proj": 2})
    assert config.base == "some/base"
    assert config.scale("model.layers.1.q_proj", 8) == 0.5
    assert config.scale("model.layers.1.v_proj", 8) == 0.25
    assert config.scale("model.layers.11.v_proj", 8) == 2
    assert read(tmp_path, use_rslora=True).scale("k_proj", 4) == 8


@pytest.mark.parametrize("name", OTHERS)
def test_fields_that_would_change_numbers_are_refused(tmp_path: Path, name: str) -> None:
    assert name not in HARMLESS and name not in READ
    nothings: tuple[object, ...] = (None, False, [], {})
    for nothing in nothings:
        read(tmp_path, **{name: nothing})
    with pytest.raises(CheckpointError, match=f"{name} is .*which is not known"):
        read(tmp_path, **{name: ["lm_head"]})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"peft_type": "IA3"}, "of the kind 'IA3'; LORA is known"),
        ({"bias": "all"}, "trained biases are not known"),
        ({"init_lora_weights": "pissa_niter_4"}, "for a changed base"),
        ({"lora_alpha": "much"}, "must be numbers"),
        ({"lora_alpha": True}, "must be numbers"),
        ({"alpha_pattern": [3]}, "must be numbers"),
        ({"alpha_pattern": {".*q": 3}}, "regular expressions are not"),
        ({"base_model_name_or_path": 5}, "a text"),
        ({"some_new_option": "on"}, "some_new_option is 'on'"),
    ],
)
def test_refusals(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        read(tmp_path, **changes)
