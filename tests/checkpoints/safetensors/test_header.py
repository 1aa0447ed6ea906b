from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from clearhead.checkpoints.safetensors.header import TensorEntry, read_safetensors_header
from clearhead.errors import CheckpointError


def written(path: Path, header: Any, data: bytes = b"") -> Path:
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def test_a_file_of_the_reference_package(tmp_path: Path) -> None:
    save_file({"a": torch.zeros(2, 3), "b": torch.zeros(5).half()}, tmp_path / "a", {"note": "x"})
    header = read_safetensors_header(tmp_path / "a")
    assert header.metadata == {"note": "x"}
    assert header.tensors == {
        "a": TensorEntry("F32", (2, 3), 0, 24), "b": TensorEntry("F16", (5,), 24, 34),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"dtype": "F33", "shape": [1], "data_offsets": [0, 4]}, "unknown dtype 'F33'"),
        ({"dtype": "F32", "shape": [True], "data_offsets": [0, 4]}, "impossible shape"),
        ({"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}, "needs 8 bytes"),
        ({"dtype": "F32", "shape": [1], "data_offsets": [4, 0]}, "impossible offsets"),
        ({"dtype": "F32", "shape": [1]}, "wants exactly dtype, shape and data_offsets"),
        ({"dtype": "F16", "shape": [1], "data_offsets": [2, 4]}, "leaves a hole at byte 0"),
        ({"dtype": "F16", "shape": [1], "data_offsets": [0, 2]}, "end at byte 2, but the data"),
    ],
)
def test_broken_entries(tmp_path: Path, entry: dict[str, Any], message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        read_safetensors_header(written(tmp_path / "a", {"t": entry}, bytes(4)))


def test_metadata_that_is_no_text(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="__metadata__ is not a map"):
        read_safetensors_header(written(tmp_path / "a", {"__metadata__": {"a": 1}}))
