"""Copies between tensors and a thread's own memory, where rows are filled up with zeros to lines.

In order: rows in, rows out, a tile transposed, and the product of two rows.
"""
# numba's decorators have no types, and what its vectors are is known to LLVM alone.
# mypy: disable-error-code="untyped-decorator, no-any-return"

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from clearhead.attention.kernels.tile_product import (
    FLOAT_BYTES,
    LINE,
    LINE_BYTES,
    VECTOR_BYTES,
    put_transposed,
)
from clearhead.kernels.compiling import INLINED
from clearhead.kernels.memory import float_at, load_floats, put_float, store_floats
from clearhead.kernels.operations import LANES
from clearhead.kernels.vectors import add, broadcast, multiply_add, no_floats, sum_of

ZERO = np.float32(0)  # a Python float would drag the computation to float64


@njit(**INLINED)
def padded(width: int) -> int:
    """Bytes of a row of so many numbers: whole lines."""
    return (width + LINE - 1) // LINE * LINE_BYTES


@njit(**INLINED)
def copy_rows(
    to: int, step: int, rows: int, source: int, row_bytes: int, count: int, width: int
) -> None:
    """``rows`` rows of ``step`` bytes: ``count`` rows of ``width`` numbers, and zeros."""
    whole = width // LANES * VECTOR_BYTES
    for r in range(count):
        row, other = to + r * step, source + r * row_bytes
        for at in range(0, whole, VECTOR_BYTES):
            store_floats(row + at, load_floats(other + at))
        for at in range(whole, step, FLOAT_BYTES):
            number = float_at(other + at) if at < width * FLOAT_BYTES else ZERO
            put_float(row + at, number)
    clear(to + count * step, to + rows * step)


@njit(**INLINED)
def clear(to: int, end: int) -> None:
    """Zeros from an address to another."""
    for at in range(to, end, VECTOR_BYTES):
        store_floats(at, no_floats())


@njit(**INLINED)
def gather_rows(
    to: int, to_step: int, source: int, step: int, count: int, width: int, is_first: bool
) -> None:
    """Rows of ``width`` numbers to where they belong, or added to what is there."""
    whole = width // LANES * VECTOR_BYTES
    for r in range(count):
        row, other = to + r * to_step, source + r * step
        for at in range(0, whole, VECTOR_BYTES):
            earlier = no_floats() if is_first else load_floats(row + at)
            store_floats(row + at, add(earlier, load_floats(other + at)))
        for at in range(whole, width * FLOAT_BYTES, FLOAT_BYTES):
            earlier_number = ZERO if is_first else float_at(row + at)
            put_float(row + at, earlier_number + float_at(other + at))


@njit(**INLINED)
def transpose(to: int, source: int, step: int, factor: Any) -> None:
    """A tile's rows of ``step`` bytes, scaled, as (column, query)."""
    for lane in range(0, LINE, LANES):
        for d in range(0, step // FLOAT_BYTES, LANES):
            put_transposed(
                to + d * LINE_BYTES + lane * FLOAT_BYTES, LINE_BYTES,
                source + lane * step + d * FLOAT_BYTES, step, broadcast(factor),
            )  # fmt: skip


@njit(**INLINED)
def dot(left: int, right: int, width: int) -> Any:
    """The sum of products of two rows."""
    whole = width // LANES * VECTOR_BYTES
    sums = no_floats()
    for at in range(0, whole, VECTOR_BYTES):
        sums = multiply_add(load_floats(left + at), load_floats(right + at), sums)
    total = sum_of(sums)
    for at in range(whole, width * FLOAT_BYTES, FLOAT_BYTES):
        total += float_at(left + at) * float_at(right + at)
    return total
