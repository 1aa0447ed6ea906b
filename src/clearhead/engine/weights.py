"""Weights for the kernels: a model's matrices in tiles, and its norms.

A matrix of a GGUF file goes into tiles as it is, at its own size and without loss: see
``kernels/layouts``. So does a matrix of 16-bit numbers, float16 or bfloat16, unless 8 bits are
asked for. A float32 matrix is quantised: to Q4_1 if that is exact except for rounding errors
(weights that came from a Q4_1 file), to 16 bits if that loses nothing (they came from such a file),
to Q8_0 otherwise.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from clearhead.checkpoints.gguf.kinds import CODES
from clearhead.checkpoints.gguf.kinds import stored as stored_blocks
from clearhead.checkpoints.gguf.quantised import QuantisedTensor, unpacked
from clearhead.checkpoints.gguf.unpack_rows import unpack_function
from clearhead.engine.compiled import interleave_function, multiply_function, pack_function
from clearhead.engine.kernels.layouts import (
    PIECES,
    PLUS_128,
    SPREAD_BITS,
    TOGETHER,
    Layout,
    Piece,
)
from clearhead.engine.kernels.structures import GROUP, TILE, Interleave, Matrix, Norm, Pack
from clearhead.errors import InputError
from clearhead.kernels.threads import torch_threads
from clearhead.layers.normalisation import RMSNorm

PACKED_AT_ONCE = 16 << 20  # bytes of a matrix, before the pages of the file are given back


@dataclass(frozen=True)
class PackedMatrix:
    """A matrix in tiles of 16 rows, and its bias."""

    tiles: UInt8[Tensor, "tile bytes"]
    groups: int
    kind: str
    bias: Float[Tensor, " row"] | None

    def structure(self, following: Matrix | None = None) -> Matrix:
        """The C structure that the kernels read; ``following`` has the rows after its own."""
        layout, count = Layout.of(self.kind), self.tiles.shape[0]
        return Matrix(
            weights=self.tiles.data_ptr(),
            tiles=count,
            groups=self.groups,
            tile_bytes=self.tiles.shape[1],
            multiply=multiply_function(self.kind),
            bias=0 if self.bias is None else self.bias.data_ptr(),
            next=0 if following is None else ctypes.addressof(following),
            all_tiles=count + (0 if following is None else following.all_tiles),
            pieces=ctypes.addressof(_table(self.kind)),
            block_bytes=layout.bytes,
            unpack=unpack_function(self.kind),
            unpack_count=self.groups * GROUP // stored_blocks(self.kind).length,
        )

    @property
    def bytes(self) -> int:
        """The number of bytes that a product with this matrix reads."""
        return self.tiles.numel()

    def blocks(self) -> UInt8[Tensor, "row bytes"]:
        """The rows as blocks, as a file has them."""
        layout, tiles = Layout.of(self.kind), self.tiles.shape[0]
        count = layout.blocks(self.groups)
        held = self.tiles.view(tiles, count, TILE * layout.bytes)
        rows = torch.zeros(tiles, TILE, count, layout.bytes, dtype=torch.uint8)
        place = 0  # of the piece in the tile
        for piece in layout.pieces:
            stored = held[..., TILE * place : TILE * (place + piece.size)]
            apart = stored.reshape(tiles, count, TILE, piece.size).transpose(1, 2)
            for source, found in _as_stored(apart, piece):
                rows[..., source : source + piece.size] |= found
            place += piece.size
        return rows.view(tiles * TILE, -1)

    def dequantised(self) -> Float[Tensor, "row column"]:
        """The weights as float32, with the values that the products use."""
        rows = self.blocks()
        return unpacked(rows, self.kind, torch.arange(len(rows)))


def _as_stored(stored: UInt8[Tensor, "... byte"], piece: Piece) -> Iterator[tuple[int, Tensor]]:
    """Where the bits of a piece are in a block, and what they are there."""
    if piece.change == PLUS_128:
        stored = stored ^ 128
    elif piece.change == SPREAD_BITS:
        bits = stored[..., None] >> torch.arange(8, dtype=torch.uint8) & 1  # byte b, bit j
        bits = bits.transpose(-1, -2).reshape(*stored.shape[:-1], 4, 8)  # column 4j + b
        stored = (bits << torch.arange(8, dtype=torch.uint8)).sum(-1, dtype=torch.uint8)
    elif piece.change == TOGETHER:
        words = (stored.long() << torch.arange(0, 32, 8)).sum(-1)
        for term in piece.terms:
            moved = (words & term.mask) << term.shift + 32 >> 32
            bytes_apart = moved[..., None] >> torch.arange(0, 32, 8) & 255
            yield term.source, bytes_apart.to(torch.uint8)
        return
    yield piece.terms[0].source, stored


@functools.cache
def _table(kind: str) -> ctypes.Array[ctypes.c_int64]:
    return Layout.of(kind).table()


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


def heads_padded(heads: int, dim: int, width: int) -> Int[Tensor, " row"]:
    """The order of rows that pads each head of ``dim`` rows to ``width``: −1 is a row of zeros."""
    rows = torch.full((heads, width), -1)
    rows[:, :dim] = torch.arange(heads * dim).view(heads, dim)
    return rows.flatten()


def pack_matrix(
    weight: Float[Tensor, "row column"],
    bias: Float[Tensor, " row"] | None = None,
    order: Int[Tensor, " packed_row"] | None = None,
    *,
    eight_bits: bool = False,
) -> PackedMatrix:
    """Put a matrix into tiles; row i is row ``order[i]`` of the weight, −1 a row of zeros.

    With ``eight_bits`` 16-bit numbers become 8 bits.
    """
    weight = weight.detach()
    order = torch.arange(len(weight)) if order is None else order
    rows = torch.full((rounded_up(len(order)),), -1)
    rows[: len(order)] = order
    if bias is not None:
        bias = torch.where(rows < 0, 0.0, bias.detach().float()[rows.clamp_min(0)])
    columns = rounded_up(weight.shape[1])
    blocks = _blocks_of(weight)
    if blocks is None:
        whole = padded(weight, len(weight), columns)[rows.clamp_min(0)]
        whole[rows < 0] = 0
        return _quantised(whole, bias, eight_bits=eight_bits)
    stored = torch.where(rows < 0, -1, blocks.order[rows.clamp_min(0)])
    assert isinstance(weight, QuantisedTensor)
    tiles = _interleaved(
        blocks.blocks, Layout.of(blocks.kind), columns // GROUP, stored, weight.release
    )
    weight.release()
    return PackedMatrix(tiles, columns // GROUP, blocks.kind, bias)


def _blocks_of(weight: Tensor) -> QuantisedTensor | None:
    """The blocks of a matrix of a kind that has products; None for all others."""
    if not isinstance(weight, QuantisedTensor):
        return None
    if weight.kind == "IQ4_NL":
        return QuantisedTensor(_codes_as_bytes(weight.blocks), "Q8_0", weight.order)
    return weight if weight.kind in PIECES else None


def _codes_as_bytes(blocks: UInt8[Tensor, "row codes"]) -> UInt8[Tensor, "row bytes"]:
    """Rows of IQ4_NL as rows of Q8_0, which hold the same numbers: a code stands for a byte."""
    codes = torch.tensor(CODES, dtype=torch.int8).view(torch.uint8)
    apart = blocks.reshape(len(blocks), -1, 18)
    packed = apart[..., 2:].long()
    return torch.cat([apart[..., :2], codes[packed & 15], codes[packed >> 4]], -1).flatten(1)


def _interleaved(
    blocks: UInt8[Tensor, "stored_row byte"],
    layout: Layout,
    groups: int,
    order: Int[Tensor, " row"],
    release: Callable[[int, int], None] = lambda _first, _last: None,
) -> UInt8[Tensor, "tile bytes"]:
    """Rows of blocks in tiles. ``release`` is told which stored rows will not be read again soon,
    so that a large matrix is not in memory twice."""
    tiles = len(order) // TILE
    target = torch.empty(tiles, layout.tile_bytes(groups), dtype=torch.uint8)
    order, blocks = order.contiguous(), blocks.contiguous()
    together = any(piece.change == TOGETHER for piece in layout.pieces)
    scratch = torch.empty(torch.get_num_threads() if together else 0, TILE * layout.bytes // 4)
    at_once = max(1, PACKED_AT_ONCE // max(1, target.shape[1]))
    for first in range(0, tiles, at_once):
        some = order[TILE * first : TILE * (first + at_once)]
        task = Interleave(
            blocks.data_ptr(), blocks.shape[1], some.data_ptr(), target[first:].data_ptr(),
            len(some) // TILE, layout.blocks(groups), layout.bytes,
            ctypes.addressof(_table(layout.kind)), scratch.data_ptr(),
        )  # fmt: skip
        _run(interleave_function(), task)
        stored = some[some >= 0]
        if len(stored) and int(stored[-1] - stored[0]) == len(stored) - 1:
            release(int(stored[0]), int(stored[-1]) + 1)
    return target


def _quantised(
    weight: Float[Tensor, "row column"], bias: Float[Tensor, " row"] | None, *, eight_bits: bool
) -> PackedMatrix:
    """A float32 matrix of whole tiles and groups: 4 or 16 bits if that is lossless, otherwise 8."""
    groups = weight.shape[1] // GROUP
    tiles, kind = _tiles(weight, 4), "Q4_1"
    short = None if tiles is not None or eight_bits else sixteen_bits(weight)
    if short is not None:
        kind = SIXTEEN[short.dtype]
        order = torch.arange(len(short))
        tiles = _interleaved(short.view(torch.uint8), Layout.of(kind), groups, order)
    elif tiles is None:
        tiles, kind = _tiles(weight, 8), "Q8_0"
    assert tiles is not None
    return PackedMatrix(tiles, groups, kind, bias)


SIXTEEN = {torch.bfloat16: "BF16", torch.float16: "F16"}


def sixteen_bits(weight: Float[Tensor, "row column"]) -> Float[Tensor, "row column"] | None:
    """The same numbers in bfloat16 or float16; None if neither holds all of them."""
    for dtype in SIXTEEN:
        if all(torch.equal(part, part.to(dtype).float()) for part in (weight[:1], weight)):
            return weight.to(dtype)
    return None


def check_weights_memory(model: nn.Module, *, eight_bits: bool = False) -> None:
    """Raise an InputError if the packed weights of a model need more memory than there is."""
    if not hasattr(os, "sysconf"):
        return
    needed = sum(_packed_bytes(part, eight_bits) for part in model.parameters() if part.ndim == 2)
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > there:
        raise InputError(
            f"the engine needs {needed / 1e9:,.1f} GB for the weights of this model, and this "
            f"machine has {there / 1e9:,.1f} GB.",
            hint="a file with fewer bits for a weight (Q4_K_M, Q2_K) needs less.",
        )


def _packed_bytes(weight: Tensor, eight_bits: bool) -> int:
    if isinstance(weight, QuantisedTensor):
        return weight.blocks.numel()
    sixteen = weight.dtype in SIXTEEN and not eight_bits
    return weight.numel() * (2 * GROUP if sixteen else GROUP + 2) // GROUP


def _tiles(weight: Float[Tensor, "row column"], bits: int) -> UInt8[Tensor, "tile bytes"] | None:
    """Quantise a matrix; None if this number of bits is not lossless."""
    count = torch.get_num_threads()
    groups, tiles = weight.shape[1] // GROUP, weight.shape[0] // TILE
    layout = Layout.of("Q4_1" if bits == 4 else "Q8_0")
    target = torch.empty(tiles, layout.tile_bytes(groups), dtype=torch.uint8)
    scratch = torch.empty(count, 128, dtype=torch.uint8)
    failures = torch.zeros(count, dtype=torch.int64)
    task = Pack(
        weight.data_ptr(), target.data_ptr(), tiles, groups, bits,
        scratch.data_ptr(), failures.data_ptr(),
    )  # fmt: skip
    _run(pack_function(), task)
    return None if failures.any() else target


def _run(function: int, task: ctypes.Structure) -> None:
    threads = torch_threads()
    assert threads is not None, "check engine_supports first"
    threads.run(function, ctypes.byref(task), torch.get_num_threads())


def structures(matrices: Sequence[PackedMatrix]) -> list[Matrix]:
    """The C structures of matrices whose rows follow one another; the first stands for all."""
    made: list[Matrix] = []
    for matrix in reversed(matrices):
        made.insert(0, matrix.structure(made[0] if made else None))
    return made


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
