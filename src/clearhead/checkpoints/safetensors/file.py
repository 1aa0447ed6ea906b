"""Reading and writing safetensors files.

Every file is checked by :mod:`clearhead.checkpoints.safetensors.header` first and mapped by the
``safetensors`` package afterwards, so a tensor's bytes come from the disk only when used.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from clearhead.checkpoints.safetensors.header import TensorEntry, read_safetensors_header
from clearhead.errors import CheckpointError, InputError
from clearhead.files.atomic_write import atomic_write
from clearhead.files.json_file import parse_json
from clearhead.files.regular_file import reason

TIED = "clearhead.tied"
"""Metadata key: a JSON map from a name that is not in the file to the name that holds its data."""

_DTYPES = {
    "BOOL": torch.bool,
    "U8": torch.uint8,
    "I8": torch.int8,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
    "U16": torch.uint16,
    "I16": torch.int16,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "U32": torch.uint32,
    "I32": torch.int32,
    "F32": torch.float32,
    "U64": torch.uint64,
    "I64": torch.int64,
    "F64": torch.float64,
    "C64": torch.complex64,
}


class SafetensorsFile:
    """One safetensors file, memory-mapped.

    >>> file = SafetensorsFile("model.safetensors")         # doctest: +SKIP
    >>> file.shape("embeddings.word_embeddings.weight")     # doctest: +SKIP
    (30522, 384)
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        header = read_safetensors_header(self.path)
        self.metadata: dict[str, str] = dict(header.metadata)
        self._entries = header.tensors
        self._tied = _tied_names(self.path, self.metadata.pop(TIED, None), header.tensors)
        try:
            self._file: Any = safe_open(self.path, framework="pt")
        except (SafetensorError, OSError) as error:
            raise CheckpointError(f"{self.path} cannot be opened: {error}") from error

    def names(self) -> list[str]:
        """Return every tensor's name, tied ones included."""
        return [*self._entries, *self._tied]

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of tensor ``name``."""
        return self._entry(name).shape

    def dtype(self, name: str) -> torch.dtype:
        """Return the dtype of tensor ``name``."""
        return _DTYPES[self._entry(name).dtype]

    def tensor(self, name: str) -> torch.Tensor:
        """Return tensor ``name``: a private mapping of the file, copied only where written to."""
        self._entry(name)
        try:
            tensor: torch.Tensor = self._file.get_tensor(self._tied.get(name, name))
        except (SafetensorError, RuntimeError, ValueError) as error:
            raise CheckpointError(f"tensor {name!r} of {self.path}: {error}") from error
        return tensor

    def _entry(self, name: str) -> TensorEntry:
        entry = self._entries.get(self._tied.get(name, name))
        if entry is None:
            raise CheckpointError(f"{self.path} has no tensor {name!r}.")
        return entry


def _tied_names(path: Path, text: str | None, entries: Mapping[str, object]) -> dict[str, str]:
    if text is None:
        return {}
    try:
        tied = parse_json(text)
    except ValueError:
        tied = None
    if (
        not isinstance(tied, dict)
        or any(name in entries for name in tied)
        or not all(isinstance(kept, str) and kept in entries for kept in tied.values())
    ):
        raise CheckpointError(f"{path} is not a sound safetensors file: bad {TIED} metadata.")
    return tied


def write_safetensors(
    path: str | Path,
    tensors: Mapping[str, torch.Tensor],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write ``tensors`` to ``path``; readers see the old file or the whole new one.

    A tensor under several names (tied weights) is written once, under its first name; the other
    names go into the metadata, where :class:`SafetensorsFile` finds them again.
    """
    path = Path(path)
    if "__metadata__" in tensors:
        raise InputError("a safetensors file cannot hold a tensor named '__metadata__'.")
    kept, tied = _without_ties(tensors)
    notes = {"format": "pt", **(metadata or {})} | ({TIED: json.dumps(tied)} if tied else {})
    try:
        with atomic_write(path) as temporary:
            save_file(kept, temporary, metadata=notes)
    except (SafetensorError, OSError) as error:
        size = sum(tensor.nbytes for tensor in kept.values()) / 1e6
        raise CheckpointError(
            f"cannot write {path} ({size:.1f} MB): {reason(error)}.",
            hint="is the disk full, or the folder missing or write-protected?",
        ) from error


def _without_ties(
    tensors: Mapping[str, torch.Tensor],
) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """Split into tensors to write (each with memory of its own) and names tied to them."""
    kept: dict[str, torch.Tensor] = {}
    tied: dict[str, str] = {}
    first_name: dict[tuple[object, ...], str] = {}
    storages: set[int] = set()
    for name, tensor in tensors.items():
        if tensor.is_meta:
            raise InputError(f"tensor {name!r} cannot be written: it is on the meta device, empty.")
        first = first_name.setdefault(_identity(tensor), name)
        if first != name:
            tied[name] = first
        else:
            kept[name] = _with_own_storage(tensor.detach(), storages)
    return kept, tied


def _identity(tensor: torch.Tensor) -> tuple[object, ...]:
    if tensor.numel() == 0:
        return (id(tensor),)
    return (tensor.device, tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride())


def _with_own_storage(tensor: torch.Tensor, storages: set[int]) -> torch.Tensor:
    # The package refuses tensors that share memory, so views of something larger are copied.
    storage = tensor.untyped_storage()
    shared = storage.nbytes() != tensor.nbytes or storage.data_ptr() in storages
    storages.add(storage.data_ptr())
    if shared or not tensor.is_contiguous():
        return tensor.clone(memory_format=torch.contiguous_format)
    return tensor
