"""Integer dot products, in the instructions of this processor: most of the engine's time.

With VNNI, one instruction computes four products of bytes; elsewhere, two of 16-bit integers. Both
sum exactly the same integers, so the results are bit-identical.
"""
# numba's decorators have no types, and only LLVM knows the type of a vector.
# mypy: disable-error-code="untyped-decorator, no-any-return, misc"

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types

from clearhead.kernels.operations import (
    BYTE,
    INT,
    INTS,
    LANES,
    SHORT,
    SHORTS,
    address,
    features,
    in_all_lanes,
    intrinsic_call,
    ints,
    operation,
    picked,
    pointer,
)


# Dot products of bytes w (0 … 255) and 16-bit integers x, four in each lane. For VNNI an x is
# stored as two bytes, x = 256·upper + lower; elsewhere as it is. ``store_split`` stores the two
# parts of four numbers, ``dot_first`` and ``dot_second`` take one part each, and ``joined``
# combines both sums.
def _byte_products(width: int) -> Callable[[Any, Any, Any, Any], Any]:
    """Make the sums of four products of bytes, on vectors of ``width`` bits."""
    name = f"llvm.x86.avx512.vpdpbusd.{width}"
    part = ir.VectorType(INT, width // 32)
    bytes_part = ir.VectorType(BYTE, width // 8)

    def call(builder: Any, total: Any, weights: Any, numbers: Any) -> Any:
        factors = (builder.bitcast(factor, bytes_part) for factor in (weights, numbers))
        return intrinsic_call(builder, name, part, total, *factors)

    def by_halves(builder: Any, total: Any, weights: Any, numbers: Any) -> Any:
        halves = []
        for lanes in (list(range(8)), list(range(8, 16))):
            parts = (picked(builder, vector, lanes) for vector in (total, weights, numbers))
            halves.append(call(builder, *parts))
        return builder.shuffle_vector(*halves, ir.Constant(INTS, list(range(LANES))))

    return call if width == 512 else by_halves


def _pair_products(builder: Any, total: Any, weights: Any, numbers: Any) -> Any:
    """Sums of two products of 16-bit integers; LLVM selects the instruction for it."""
    wide = ir.VectorType(INT, 2 * LANES)
    factors = (builder.bitcast(factor, SHORTS) for factor in (weights, numbers))
    products = builder.mul(*(builder.sext(factor, wide) for factor in factors))
    first = picked(builder, products, list(range(0, 2 * LANES, 2)))
    second = picked(builder, products, list(range(1, 2 * LANES, 2)))
    return builder.add(total, builder.add(first, second))


class Products:
    """The operations on split integers for one kind of processor."""

    def __init__(self, byte_width: int | None) -> None:
        multiply: Callable[..., Any]
        first_weights: Callable[..., Any]
        second_weights: Callable[..., Any]
        if byte_width is not None:
            multiply = _byte_products(byte_width)
            first_weights = second_weights = _whole_bytes
            self._split, self._shift = _bytes_apart, 8
        else:
            multiply = _pair_products
            first_weights, second_weights = _even_bytes, _odd_bytes
            self._split, self._shift = _pairs_apart, 0

        @operation(ints, ints, ints, ints)
        def dot_first(builder: Any, total: Any, weights: Any, numbers: Any) -> Any:
            return multiply(builder, total, first_weights(builder, weights), numbers)

        @operation(ints, ints, ints, ints)
        def dot_second(builder: Any, total: Any, weights: Any, numbers: Any) -> Any:
            return multiply(builder, total, second_weights(builder, weights), numbers)

        @operation(ints, ints, ints)
        def joined(builder: Any, first: Any, second: Any) -> Any:
            return builder.add(builder.shl(first, in_all_lanes(INTS, self._shift)), second)

        @operation(types.void, address, ints)
        def store_split(builder: Any, where: Any, vector: Any) -> None:
            split = self._split(builder, vector)
            builder.store(split, pointer(builder, where, split.type), align=4)

        self.dot_first, self.dot_second = dot_first, dot_second
        self.joined, self.store_split = joined, store_split


def _whole_bytes(_builder: Any, weights: Any) -> Any:
    return weights


def _even_bytes(builder: Any, weights: Any) -> Any:
    return builder.and_(weights, in_all_lanes(INTS, 0x00FF00FF))


def _odd_bytes(builder: Any, weights: Any) -> Any:
    return _even_bytes(builder, builder.lshr(weights, in_all_lanes(INTS, 8)))


def _bytes_apart(builder: Any, vector: Any) -> Any:
    """Of each four numbers the upper bytes, then the lower ones: x = 256·upper + lower."""
    upper = builder.ashr(builder.add(vector, in_all_lanes(INTS, 128)), in_all_lanes(INTS, 8))
    quarter = ir.VectorType(INT, LANES // 4)
    sixteen_bytes = ir.VectorType(BYTE, LANES)
    parts = [
        builder.bitcast(builder.trunc(part, sixteen_bytes), quarter) for part in (upper, vector)
    ]
    order = ir.Constant(ir.VectorType(INT, 8), [0, 4, 1, 5, 2, 6, 3, 7])
    return builder.shuffle_vector(*parts, order)


def _pairs_apart(builder: Any, vector: Any) -> Any:
    """Of each four numbers the first and third, then the second and fourth, as 16 bits."""
    shorts = builder.trunc(vector, ir.VectorType(SHORT, LANES))
    return picked(builder, shorts, [four + i for four in range(0, LANES, 4) for i in (0, 2, 1, 3)])


def products_of_this_machine() -> Products:
    """Return the operations for this processor: VNNI of either width, if it has it."""
    available = features()
    if platform.machine().lower() in ("x86_64", "amd64"):
        if "avx512vnni" in available:
            return Products(512)
        if "avxvnni" in available:
            return Products(256)
    return Products(None)
