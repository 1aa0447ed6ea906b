"""Arithmetic on vectors of 16 numbers, for what numba compiles."""
# numba's decorators have no types, and what its vectors are is known to LLVM alone.
# mypy: disable-error-code="untyped-decorator, no-any-return, misc"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types

from clearhead.kernels.operations import (
    FLOATS,
    INT,
    INTS,
    LANES,
    broadcast_to,
    floats,
    in_all_lanes,
    intrinsic_call,
    ints,
    number,
    operation,
    picked,
    whole,
)

ROUNDER = 1.5 * 2**23 + 127


@operation(floats, number)
def broadcast(builder: Any, value: Any) -> Any:
    """One number in all lanes."""
    return broadcast_to(builder, value, FLOATS)


@operation(ints)
def no_ints(_builder: Any) -> Any:
    """Sixteen zeros, whole."""
    return in_all_lanes(INTS, 0)


@operation(floats)
def no_floats(_builder: Any) -> Any:
    """Sixteen zeros."""
    return in_all_lanes(FLOATS, 0.0)


@operation(ints)
def lane_numbers(_builder: Any) -> Any:
    """0, 1, 2 … 15."""
    return ir.Constant(INTS, list(range(LANES)))


@operation(floats, floats, floats)
def add(builder: Any, left: Any, right: Any) -> Any:
    """Left + right."""
    return builder.fadd(left, right)


@operation(floats, floats, floats)
def subtract(builder: Any, left: Any, right: Any) -> Any:
    """Left − right."""
    return builder.fsub(left, right)


@operation(floats, floats, floats)
def multiply(builder: Any, left: Any, right: Any) -> Any:
    """Left · right."""
    return builder.fmul(left, right)


@operation(floats, floats, floats)
def divide(builder: Any, left: Any, right: Any) -> Any:
    """Left / right."""
    return builder.fdiv(left, right)


@operation(floats, floats, floats, floats)
def multiply_add(builder: Any, left: Any, right: Any, added: Any) -> Any:
    """Left · right + added, rounded once."""
    return intrinsic_call(builder, "llvm.fma.v16f32", FLOATS, left, right, added)


@operation(floats, floats)
def absolute(builder: Any, vector: Any) -> Any:
    """Every number without its sign."""
    return intrinsic_call(builder, "llvm.fabs.v16f32", FLOATS, vector)


@operation(floats, floats, floats)
def with_sign_of(builder: Any, vector: Any, other: Any) -> Any:
    """Every number with the sign of the other's."""
    return intrinsic_call(builder, "llvm.copysign.v16f32", FLOATS, vector, other)


@operation(floats, floats, floats)
def larger(builder: Any, left: Any, right: Any) -> Any:
    """The larger of the two; ``right`` where one is NaN."""
    return builder.select(builder.fcmp_ordered(">", left, right), left, right)


@operation(floats, floats, floats)
def smaller(builder: Any, left: Any, right: Any) -> Any:
    """The smaller of the two; ``right`` where one is NaN."""
    return builder.select(builder.fcmp_ordered("<", left, right), left, right)


@operation(floats, floats, floats, floats, floats)
def where_below(builder: Any, left: Any, right: Any, then: Any, otherwise: Any) -> Any:
    """``then`` where left < right, ``otherwise`` elsewhere."""
    return builder.select(builder.fcmp_ordered("<", left, right), then, otherwise)


@operation(floats, floats, types.int64, types.int64)
def between(builder: Any, vector: Any, first: Any, last: Any) -> Any:
    """Lanes from ``first`` up to before ``last``; −infinity in the others."""
    inside = _inside(builder, first, last)
    return builder.select(inside, vector, in_all_lanes(FLOATS, float("-inf")))


@operation(floats, floats, types.int64, types.int64)
def zero_outside(builder: Any, vector: Any, first: Any, last: Any) -> Any:
    """Lanes from ``first`` up to before ``last``; 0 in the others."""
    return builder.select(_inside(builder, first, last), vector, in_all_lanes(FLOATS, 0.0))


def _inside(builder: Any, first: Any, last: Any) -> Any:
    """True in the lanes from ``first`` up to before ``last``."""
    lanes = ir.Constant(INTS, list(range(LANES)))
    return builder.and_(
        builder.icmp_signed(">=", lanes, _count(builder, first)),
        builder.icmp_signed("<", lanes, _count(builder, last)),
    )


def _folded(builder: Any, vector: Any, join: Callable[[Any, Any], Any]) -> Any:
    """All lanes joined, in a fixed order: halves, then halves of them."""
    count = LANES
    while count > 1:
        count //= 2
        first = picked(builder, vector, list(range(count)))
        vector = join(first, picked(builder, vector, list(range(count, 2 * count))))
    return builder.extract_element(vector, ir.Constant(INT, 0))


@operation(number, floats)
def sum_of(builder: Any, vector: Any) -> Any:
    """All lanes added up."""
    return _folded(builder, vector, builder.fadd)


@operation(number, floats)
def largest_of(builder: Any, vector: Any) -> Any:
    """The largest lane."""

    def join(left: Any, right: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", left, right), left, right)

    return _folded(builder, vector, join)


@operation(whole, ints)
def int_sum_of(builder: Any, vector: Any) -> Any:
    """All lanes added up."""
    return _folded(builder, vector, builder.add)


# Between whole numbers and floats, and the bits of both.
@operation(floats, ints)
def as_floats(builder: Any, vector: Any) -> Any:
    """The same numbers as float32."""
    return builder.sitofp(vector, FLOATS)


@operation(ints, floats)
def as_ints(builder: Any, vector: Any) -> Any:
    """Whole numbers given as float32."""
    return builder.fptosi(vector, INTS)


@operation(floats, floats)
def rounded(builder: Any, vector: Any) -> Any:
    """The nearest whole numbers, halves to even."""
    return intrinsic_call(builder, "llvm.nearbyint.v16f32", FLOATS, vector)


@operation(floats, ints)
def power_of_two(builder: Any, exponents: Any) -> Any:
    """2ⁿ for whole n from −126 to 127."""
    bits = builder.shl(builder.add(exponents, in_all_lanes(INTS, 127)), in_all_lanes(INTS, 23))
    return builder.bitcast(bits, FLOATS)


@operation(types.UniTuple(floats, 2), floats)
def rounded_power(builder: Any, vector: Any) -> Any:
    """The nearest whole numbers n, and 2ⁿ, for n from −126 to 127.

    vector + ROUNDER holds n + 127 in its last bits, which are an exponent's once shifted.
    """
    rounder = in_all_lanes(FLOATS, ROUNDER)
    shifted = builder.fadd(vector, rounder)
    bits = builder.shl(builder.bitcast(shifted, INTS), in_all_lanes(INTS, 23))
    both = ir.Constant(ir.ArrayType(FLOATS, 2), ir.Undefined)
    both = builder.insert_value(both, builder.fsub(shifted, rounder), 0)
    return builder.insert_value(both, builder.bitcast(bits, FLOATS), 1)


@operation(ints, ints, ints)
def add_ints(builder: Any, left: Any, right: Any) -> Any:
    """Left + right."""
    return builder.add(left, right)


@operation(ints, ints, ints)
def either(builder: Any, left: Any, right: Any) -> Any:
    """Every bit that is set in one of the two."""
    return builder.or_(left, right)


@operation(ints, ints, types.int64)
def masked(builder: Any, vector: Any, bits: Any) -> Any:
    """Of every lane only these bits."""
    return builder.and_(vector, _count(builder, bits))


@operation(ints, ints, types.int64)
def shifted_right(builder: Any, vector: Any, count: Any) -> Any:
    """Every lane's bits moved down; zeros come in."""
    return builder.lshr(vector, _count(builder, count))


@operation(ints, ints, types.int64)
def shifted_left(builder: Any, vector: Any, count: Any) -> Any:
    """Every lane's bits moved up."""
    return builder.shl(vector, _count(builder, count))


@operation(ints, ints, types.int64)
def divided_by_power(builder: Any, vector: Any, count: Any) -> Any:
    """Every lane / 2ⁿ, its sign kept; rounded down."""
    return builder.ashr(vector, _count(builder, count))


@operation(ints, ints, ints)
def shifted_right_by(builder: Any, vector: Any, counts: Any) -> Any:
    """Every lane's bits moved down by a count of its own."""
    return builder.lshr(vector, counts)


@operation(ints, types.int64)
def broadcast_int(builder: Any, value: Any) -> Any:
    """The last 32 bits of a whole number in all lanes."""
    return _count(builder, value)


def _count(builder: Any, value: Any) -> Any:
    return broadcast_to(builder, builder.trunc(value, INT), INTS)
