"""Safetensors files: every tensor of every dtype is read."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import torch
from safetensors.torch import save

from clearhead.checkpoints.safetensors.file import TIED, SafetensorsFile
from tests.hostile.mutant import Format


def use(folder: Path, random: Random) -> None:
    """Reads the header, and the first and last number of every tensor."""
    file = SafetensorsFile(folder / "file.safetensors")
    for name in file.names():
        tensor = file.tensor(name)
        assert tensor.shape == file.shape(name)
        assert tensor.dtype == file.dtype(name)
        if tensor.numel():
            tensor.flatten()[0].item(), tensor.flatten()[-1].item()


def _specimens() -> list[dict[str, bytes]]:
    tensors = {
        str(dtype).removeprefix("torch."): torch.arange(6).reshape(2, 3).to(dtype)
        for dtype in (
            torch.float32,
            torch.float64,
            torch.bfloat16,
            torch.int64,
            torch.bool,
            torch.uint8,
        )
    } | {"none": torch.zeros(0, 5), "one": torch.tensor(3.0)}
    notes = {"format": "pt", TIED: json.dumps({"again": "float32"})}
    return [{"file.safetensors": save(tensors, notes)}]


SAFETENSORS = Format("safetensors", _specimens, use, weight=4.0)
