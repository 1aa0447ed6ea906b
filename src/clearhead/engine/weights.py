"""Quantised weights: a model's matrices and norms, packed for the kernels.

Each group of 32 columns of a row has its own scale. Weights are stored as

- 4 bits with a minimum, scale·q + minimum, if that is exact except for rounding errors: weights
  that come from a Q4_1 file;
- 8 bits, scale·q, otherwise.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from clearhead.engine.kernels.structures import GROUP, TILE, TILE_BYTES, Matrix, Norm, Pack
from clearhead.kernels.threads import torch_threads
from clearhead.layers.normalisation import RMSNorm


@dataclass(frozen=True)
class PackedMatrix:
    """A matrix in tiles of 16 rows, and its bias."""

    tiles: UInt8[Tensor, "tile bytes"]
    groups: int
    bits: int
    bias: Float[Tensor, " row"] | None

    def structure(self) -> ctypes.Structure:
        """The C structure that the kernels read."""
        return Matrix(
            self.tiles.data_ptr(),
            self.tiles.shape[0],
            self.groups,
            self.bits,
            0 if self.bias is None else self.bias.data_ptr(),
        )

    @property
    def bytes(self) -> int:
        """The number of bytes that a product with this matrix reads."""
        return self.tiles.numel()

    def dequantised(self) -> Float[Tensor, "row column"]:
        """The weights as float32, with the values that the products use."""
        count, groups = self.tiles.shape[0], self.groups
        blocks = self.tiles.view(count, groups, TILE_BYTES[self.bits])
        halves = (
            blocks[..., : 64 if self.bits == 4 else 32].contiguous().view(torch.float16).float()
        )
        numbers = blocks[..., 64 if self.bits == 4 else 32 :].reshape(count, groups, -1, TILE, 4)
        if self.bits == 4:
            numbers = torch.cat([numbers & 15, numbers >> 4], dim=2).float()
        else:
            numbers = numbers.float() - 128
        rows = numbers.permute(0, 1, 3, 2, 4).reshape(count, groups, TILE, GROUP)
        rows = rows * halves[..., :TILE, None]
        if self.bits == 4:
            rows = rows + halves[..., TILE:, None]
        return rows.transpose(1, 2).reshape(count * TILE, groups * GROUP)


def rounded_up(number: int, step: int = GROUP) -> int:
    """Round up to a multiple of ``step``."""
    return -(-number // step) * step


def padded(tensor: Tensor, *shape: int) -> Tensor:
    """Convert to float32 and pad each axis with zeros at its end."""
    tensor = tensor.detach().float()
    if tuple(tensor.shape) == shape:
        return tensor.contiguous()
    larger = tensor.new_zeros(shape)
    larger[tuple(slice(0, size) for size in tensor.shape)] = tensor
    return larger


def heads_padded(tensor: Tensor, heads: int, width: int, *, axis: int = 0) -> Tensor:
    """Pad each head to ``width`` rows (or columns, with ``axis=1``)."""
    tensor = tensor.detach().float()
    shape = [*tensor.shape[:axis], heads, -1, *tensor.shape[axis + 1 :]]
    heads_apart = tensor.reshape(shape)
    shape = list(heads_apart.shape)
    shape[axis + 1] = width
    return padded(heads_apart, *shape).flatten(axis, axis + 1)


def pack_matrix(
    weight: Float[Tensor, "row column"], bias: Float[Tensor, " row"] | None = None
) -> PackedMatrix:
    """Quantise a matrix: 4 bits if that is lossless, otherwise 8."""
    return pack_interleaved([weight], [bias])


def pack_interleaved(
    weights: Sequence[Float[Tensor, "row column"]],
    biases: Sequence[Float[Tensor, " row"] | None],
) -> PackedMatrix:
    """Quantise several matrices of one shape as one, their tiles interleaved."""
    rows, columns = (rounded_up(size) for size in weights[0].shape)
    matrices = [padded(weight, rows, columns) for weight in weights]
    bits = 4
    tiles = [_tiles(weight, bits) for weight in matrices]
    if any(part is None for part in tiles):
        bits = 8
        tiles = [_tiles(weight, bits) for weight in matrices]
    found = torch.stack([part for part in tiles if part is not None], dim=1).flatten(0, 1)
    bias = None
    if any(given is not None for given in biases):
        each = [torch.zeros(rows) if given is None else padded(given, rows) for given in biases]
        bias = torch.stack([part.view(-1, TILE) for part in each], dim=1).flatten()
    return PackedMatrix(found, columns // GROUP, bits, bias)


def _tiles(weight: Float[Tensor, "row column"], bits: int) -> UInt8[Tensor, "tile bytes"] | None:
    """Pack a matrix into tiles; None if this number of bits is not lossless."""
    threads, count = torch_threads(), torch.get_num_threads()
    assert threads is not None, "check engine_supports first"
    groups, tiles = weight.shape[1] // GROUP, weight.shape[0] // TILE
    target = torch.empty(tiles, groups * TILE_BYTES[bits], dtype=torch.uint8)
    scratch = torch.empty(count, 128, dtype=torch.uint8)
    failures = torch.zeros(count, dtype=torch.int64)
    task = Pack(
        weight.data_ptr(), target.data_ptr(), tiles, groups, bits,
        scratch.data_ptr(), failures.data_ptr(),
    )  # fmt: skip
    threads.run(pack_function(), ctypes.byref(task), count)
    return None if failures.any() else target


@functools.cache
def pack_function() -> int:
    """Compile or load the function that packs weights; return its address."""
    from numba import types

    from clearhead.engine.kernels.weight_packing import pack_weights
    from clearhead.kernels.compiling import compiled

    return int(compiled(pack_weights, types.void(types.int64)).address)


@dataclass(frozen=True)
class PackedNorm:
    """Weight and bias of a normalisation, padded with zeros."""

    weight: Float[Tensor, " width"]
    bias: Float[Tensor, " width"] | None

    @classmethod
    def of(cls, norm: nn.Module, width: int) -> PackedNorm:
        """Pack the parameters of a LayerNorm or RMSNorm."""
        weight = norm.weight
        assert isinstance(weight, Tensor)
        if isinstance(norm, RMSNorm) and norm.offset:
            weight = 1 + weight
        bias = getattr(norm, "bias", None)
        return cls(padded(weight, width), None if bias is None else padded(bias, width))

    def structure(self) -> ctypes.Structure:
        """The C structure that the kernels read."""
        return Norm(self.weight.data_ptr(), 0 if self.bias is None else self.bias.data_ptr())
