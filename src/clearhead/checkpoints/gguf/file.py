"""Reading GGUF files: memory-mapped, dequantised when a tensor is used."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

import numpy as np
import torch

from clearhead.checkpoints.gguf.dequantise import Bytes, dequantise
from clearhead.checkpoints.gguf.header import GGUFTensor, read_gguf_header
from clearhead.checkpoints.gguf.quantised import QuantisedTensor
from clearhead.errors import CheckpointError

# Kinds whose blocks are single numbers that torch knows; all others are dequantised.
_PLAIN = {
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F64": torch.float64,
    "I8": torch.int8,
    "I16": torch.int16,
    "I32": torch.int32,
    "I64": torch.int64,
}


class GGUFFile:
    """One GGUF file (version 2 or 3, little-endian), memory-mapped.

    ``metadata`` holds every key and value: numbers, truth values and strings as Python's own,
    arrays of strings as lists, arrays of numbers as NumPy arrays.

    >>> file = GGUFFile("SmolLM2-135M-Instruct.Q4_1.gguf")              # doctest: +SKIP
    >>> file.kind("blk.0.attn_q.weight")                                # doctest: +SKIP
    'Q4_1'
    >>> file.tensor("blk.0.attn_q.weight").shape                        # doctest: +SKIP
    torch.Size([576, 576])
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        header = read_gguf_header(self.path)
        self.metadata: dict[str, Any] = header.metadata
        self._tensors = header.tensors
        self._mapping = header.data
        self._data = np.frombuffer(header.data, dtype=np.uint8)

    def names(self) -> list[str]:
        """Return every tensor's name."""
        return list(self._tensors)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of tensor ``name`` in torch's order: rows first, row length last."""
        return self._tensor(name).shape

    def kind(self, name: str) -> str:
        """Return how tensor ``name`` is stored: ``"F32"``, ``"Q4_1"``, ``"Q6_K"`` …."""
        return self._tensor(name).kind.name

    def blocks(self, name: str) -> Bytes:
        """Return the stored bytes of tensor ``name`` as a read-only view: (block, byte).

        The blocks of a row follow one another, and the rows too.
        """
        tensor = self._tensor(name)
        view = self._bytes(tensor).reshape(-1, tensor.kind.block_bytes)
        view.flags.writeable = False
        return view

    def quantised(self, name: str) -> QuantisedTensor:
        """Return the matrix ``name`` as it is stored, unpacked where it is used."""
        tensor, mapping = self._tensor(name), self._mapping  # not all of the metadata with it
        rows = torch.from_numpy(self._bytes(tensor)).view(tensor.shape[0], -1)

        def give_back(start: int, end: int) -> None:
            _give_back(mapping, tensor.start + start, min(tensor.start + end, tensor.end))

        return QuantisedTensor(rows, tensor.kind.name, give_back=give_back)

    def tensor(self, name: str, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """Return tensor ``name`` as ``dtype``, dequantised if need be.

        A tensor that is stored as ``dtype`` already is a private mapping of the file, not a copy.
        """
        tensor = self._tensor(name)
        plain = _PLAIN.get(tensor.kind.name)
        if plain is not None:
            numbers = torch.from_numpy(self._bytes(tensor)).view(plain)
        else:
            numbers = self._dequantised(name, tensor)
        return numbers.view(tensor.shape).to(dtype)

    def _dequantised(self, name: str, tensor: GGUFTensor) -> torch.Tensor:
        blocks = self.blocks(name)
        result = np.empty((len(blocks), tensor.kind.block_length), dtype=np.float32)
        dequantise(blocks, tensor.kind, result)
        return torch.from_numpy(result)

    def _bytes(self, tensor: GGUFTensor) -> Bytes:
        return self._data[tensor.start : tensor.end]

    def _tensor(self, name: str) -> GGUFTensor:
        tensor = self._tensors.get(name)
        if tensor is None:
            raise CheckpointError(f"{self.path} has no tensor {name!r}.")
        return tensor


def _give_back(mapping: mmap.mmap, start: int, end: int) -> None:
    """Let the system have the pages that hold nothing but these bytes of a file."""
    first = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
    last = end // mmap.PAGESIZE * mmap.PAGESIZE
    if last > first and hasattr(mmap, "MADV_DONTNEED"):
        mapping.madvise(mmap.MADV_DONTNEED, first, last - first)
