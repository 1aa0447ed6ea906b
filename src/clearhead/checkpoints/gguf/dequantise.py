"""From GGUF blocks to float32, a few thousand blocks at a time.

A block stores small whole numbers q and one or two half-precision scales. The plain kinds give
``scale·q`` (Q4_0, Q5_0, Q8_0) or ``scale·q + minimum`` (Q4_1, Q5_1). The K-quants cut a block of
256 into 8 or 16 parts with small whole-number scales of their own: ``(scale·s)·q − (minimum·m)``.

The common kinds are written out here because that is several times faster than the ``gguf``
package and needs no memory beyond the result; the package does the others and is the reference
of the tests, which compare bits.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from clearhead.checkpoints.gguf.kinds import TensorKind

NUMBERS_AT_ONCE = 131_072
"""How many numbers are unpacked together: their temporaries stay in the processor's cache."""

Bytes = NDArray[np.uint8]  # (block, byte)
Floats = NDArray[np.float32]  # (block, number)


def dequantise(blocks: Bytes, kind: TensorKind, result: Floats) -> None:
    """Unpack ``blocks`` (block, byte) of ``kind`` into ``result`` (block, number)."""
    unpack = _UNPACK.get(kind.name) or _by_package(kind.name)
    step = NUMBERS_AT_ONCE // kind.block_length
    with np.errstate(all="ignore"):  # infinite scales in a broken file are data, not a warning
        for start in range(0, len(blocks), step):
            unpack(blocks[start : start + step], result[start : start + step])


def _by_package(name: str) -> Callable[[Bytes, Floats], None]:
    from gguf import GGMLQuantizationType, quants

    def unpack(blocks: Bytes, result: Floats) -> None:
        result[:] = quants.dequantize(blocks, GGMLQuantizationType[name])

    return unpack


def _half(blocks: Bytes, start: int) -> Floats:
    """Return the half-precision number at byte ``start`` of each block: (block, 1)."""
    return blocks[:, start : start + 2].copy().view("<f2").astype(np.float32)


def _nibbles(packed: Bytes, halves: Floats) -> None:
    """Write the low and high four bits of ``packed`` (..., n) to ``halves`` (..., 2, n)."""
    halves[..., 0, :] = packed & 15
    halves[..., 1, :] = packed >> 4


def _fifth_bits(blocks: Bytes, start: int) -> Bytes:
    """Return the 32 single bits at byte ``start`` of each block, each worth 16: (block, 2, 16)."""
    bits = np.unpackbits(blocks[:, start : start + 4], axis=1, bitorder="little")
    return (bits << np.uint8(4)).reshape(-1, 2, 16)


def _q4_0(blocks: Bytes, result: Floats) -> None:
    _nibbles(blocks[:, 2:], result.reshape(-1, 2, 16))
    result -= 8
    result *= _half(blocks, 0)


def _q4_1(blocks: Bytes, result: Floats) -> None:
    _nibbles(blocks[:, 4:], result.reshape(-1, 2, 16))
    result *= _half(blocks, 0)
    result += _half(blocks, 2)


def _q5_0(blocks: Bytes, result: Floats) -> None:
    _nibbles(blocks[:, 6:], result.reshape(-1, 2, 16))
    result += _fifth_bits(blocks, 2).reshape(-1, 32)
    result -= 16
    result *= _half(blocks, 0)


def _q5_1(blocks: Bytes, result: Floats) -> None:
    _nibbles(blocks[:, 8:], result.reshape(-1, 2, 16))
    result += _fifth_bits(blocks, 4).reshape(-1, 32)
    result *= _half(blocks, 0)
    result += _half(blocks, 2)


def _q8_0(blocks: Bytes, result: Floats) -> None:
    np.multiply(blocks[:, 2:].view(np.int8), _half(blocks, 0), out=result)


def _scales_and_minima(blocks: Bytes) -> tuple[Floats, Floats]:
    """Return scale·s and minimum·m of the eight parts of Q4_K and Q5_K blocks: (block, 8, 1).

    Twelve bytes hold eight 6-bit s and eight 6-bit m: bytes 0-3 the first four s, bytes 4-7 the
    first four m, bytes 8-11 the low four bits of the other s and m, whose two high bits are the
    unused top bits of bytes 0-3 and 4-7.
    """
    first, second, rest = (blocks[:, start : start + 4] for start in (4, 8, 12))
    scales = np.concatenate([first & 63, (rest & 15) | (first >> 6 << 4)], axis=1)
    minima = np.concatenate([second & 63, (rest >> 4) | (second >> 6 << 4)], axis=1)
    return (scales * _half(blocks, 0))[:, :, None], (minima * _half(blocks, 2))[:, :, None]


def _q4_k(blocks: Bytes, result: Floats) -> None:
    scales, minima = _scales_and_minima(blocks)
    _nibbles(blocks[:, 16:].reshape(-1, 4, 32), result.reshape(-1, 4, 2, 32))
    parts = result.reshape(-1, 8, 32)
    parts *= scales
    parts -= minima


def _q5_k(blocks: Bytes, result: Floats) -> None:
    scales, minima = _scales_and_minima(blocks)
    _nibbles(blocks[:, 48:].reshape(-1, 4, 32), result.reshape(-1, 4, 2, 32))
    parts = result.reshape(-1, 8, 32)
    for part in range(8):  # bit number `part` of each of the 32 high bytes
        parts[:, part] += (blocks[:, 16:48] >> part & 1) << 4
    parts *= scales
    parts -= minima


def _q6_k(blocks: Bytes, result: Floats) -> None:
    low = blocks[:, :128].reshape(-1, 2, 2, 32)
    high = blocks[:, 128:192].reshape(-1, 2, 32)
    quarters = result.reshape(-1, 2, 4, 32)
    for quarter in range(4):  # two high bits each, above four low bits from either nibble
        nibble = low[:, :, quarter % 2] >> (quarter // 2 * 4) & 15
        quarters[:, :, quarter] = nibble | (high >> 2 * quarter & 3) << 4
    result -= 32
    parts = result.reshape(-1, 16, 16)
    parts *= (blocks[:, 192:208].view(np.int8) * _half(blocks, 208))[:, :, None]


_UNPACK: dict[str, Callable[[Bytes, Floats], None]] = {
    "Q4_0": _q4_0,
    "Q4_1": _q4_1,
    "Q5_0": _q5_0,
    "Q5_1": _q5_1,
    "Q8_0": _q8_0,
    "Q4_K": _q4_k,
    "Q5_K": _q5_k,
    "Q6_K": _q6_k,
}
