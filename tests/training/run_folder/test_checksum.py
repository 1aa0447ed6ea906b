"""Checksums: of files, JSON values and tensors."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import torch

from clearhead.errors import CheckpointError
from clearhead.training.run_folder.checksum import (
    checksum_of_file,
    checksum_of_json,
    checksum_of_tensors,
)


def test_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    assert checksum_of_file(tmp_path / "file") == hashlib.sha256(b"abc").hexdigest()
    with pytest.raises(CheckpointError, match="cannot be read"):
        checksum_of_file(tmp_path / "other")


def test_a_json_value_however_it_is_laid_out() -> None:
    assert checksum_of_json({"a": 1, "b": [2]}) == checksum_of_json({"b": [2], "a": 1})
    assert checksum_of_json({"a": 1}) != checksum_of_json({"a": True})
    assert checksum_of_json({"a": 1}) != checksum_of_json({"a": 1.0})


@pytest.mark.parametrize(
    "other",
    [
        {"b": torch.zeros(2, 3)},
        {"a": torch.zeros(3, 2)},
        {"a": torch.zeros(2, 3, dtype=torch.int32)},
        {"a": torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.0, -0.0]])},
        {"a": torch.zeros(2, 3), "b": torch.zeros(0)},
    ],
)
def test_tensors(other: dict[str, torch.Tensor]) -> None:
    sound = checksum_of_tensors({"a": torch.zeros(2, 3)}, "note")
    assert sound == checksum_of_tensors({"a": torch.zeros(3, 2).T}, "note")
    assert sound != checksum_of_tensors({"a": torch.zeros(2, 3)}, "other note")
    assert sound != checksum_of_tensors(other, "note")


def test_every_dtype_has_bytes() -> None:
    kinds = [torch.bfloat16, torch.float8_e4m3fn, torch.bool, torch.int64, torch.complex64]
    sums = {checksum_of_tensors({"a": torch.ones(5).to(kind)}, "") for kind in kinds}
    assert len(sums) == len(kinds)
