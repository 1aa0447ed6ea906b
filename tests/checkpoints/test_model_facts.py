from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from clearhead.checkpoints.model_facts import facts_of
from clearhead.errors import CheckpointError


def test_a_folder(tmp_path: Path) -> None:
    config = {"layers": 7, "names": list("abcde"), "pair": [2, 3], "note": "a\nb", "long": "x" * 99}
    (tmp_path / "config.json").write_text(json.dumps(config))
    save_file(
        {"a": torch.ones(2), "b": torch.ones(3), "c": torch.ones(5).half()},
        tmp_path / "model.safetensors",
        metadata={"format": "pt"},
    )
    assert facts_of(tmp_path) == {
        "layers": "7",
        "names": "5 items",
        "pair": "[2, 3]",
        "note": "a b",
        "long": "99 characters",
        "tensors": "2 F32, 1 F16",
        "format": "pt",
    }
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"config\.json is not valid JSON"):
        facts_of(tmp_path)


def test_a_gguf(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_token_scores([0.5] * 11)
    writer.add_tensor("t", np.ones(3, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert facts_of(path) == {
        "tensors": "1 F32",
        "general.architecture": "llama",
        "tokenizer.ggml.scores": "11 items",
    }


@pytest.mark.download
def test_minilm(default_model_files: Callable[[str], Path]) -> None:
    facts = facts_of(default_model_files("minilm"))
    assert facts["num_hidden_layers"] == "6"
    assert facts["tensors"] == "103 F32, 1 I64"
