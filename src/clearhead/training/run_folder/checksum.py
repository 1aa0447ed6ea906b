"""SHA-256 checksums of what a run keeps: files, JSON values, tensors.

Disks and copies flip bits, and most of a checkpoint is numbers, in which nothing looks wrong.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from clearhead.errors import CheckpointError
from clearhead.files.regular_file import reason, regular_file_size


class DamagedError(CheckpointError):
    """A file of a run is not what was written: its checksum differs."""


def checksum_of_file(path: Path) -> str:
    """The SHA-256 of a file's bytes.

    Raises:
        CheckpointError: the file cannot be read.
    """
    regular_file_size(path, "training", may_be_empty=True)
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {reason(error)}.") from error


def checksum_of_json(value: Any) -> str:
    """The SHA-256 of a JSON value, however a file may lay it out.

    >>> checksum_of_json({"a": 1, "b": [2]}) == checksum_of_json({"b": [2], "a": 1})
    True
    """
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def checksum_of_tensors(tensors: Mapping[str, Tensor], note: str) -> str:
    """The SHA-256 of a note and of named tensors: names, dtypes, shapes and every byte."""
    digest = hashlib.sha256(note.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode())
        if tensor.numel():
            digest.update(tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
