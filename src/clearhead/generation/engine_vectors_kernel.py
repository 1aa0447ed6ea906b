"""Vectors of 16 numbers for numba, which has none: each operation here is one line of LLVM's code.

LLVM brings them to what the machine has: one AVX-512 register, two of AVX2, four of NEON. They
exist only inside compiled functions. Addresses are whole numbers, in bytes.

Products of whole numbers are what the engine spends its time on, so they follow the machine: with
VNNI, four products of bytes in one instruction; elsewhere, two of 16-bit numbers. Both add up
exactly the same whole numbers, so the results agree bit for bit.
"""
# numba's decorators have no types, and what its vectors are is known to LLVM alone.
# mypy: disable-error-code="untyped-decorator, no-any-return, misc"

from __future__ import annotations

import inspect
import platform
from collections.abc import Callable
from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

LANES = 16
FLOAT, HALF, BYTE, SHORT, INT = (
    ir.FloatType(),
    ir.HalfType(),
    ir.IntType(8),
    ir.IntType(16),
    ir.IntType(32),
)
_FLOATS, _INTS = ir.VectorType(FLOAT, LANES), ir.VectorType(INT, LANES)
_HALVES = ir.VectorType(HALF, LANES)
_BYTES, _SHORTS = ir.VectorType(BYTE, 4 * LANES), ir.VectorType(SHORT, 2 * LANES)


class Vector(types.Type):
    """numba's type of a vector."""

    def __init__(self, name: str, vector: ir.VectorType) -> None:
        super().__init__(name=name)
        self.vector = vector


@register_model(Vector)
class VectorModel(models.PrimitiveModel):
    """A vector is what LLVM says it is."""

    def __init__(self, manager: Any, kind: Vector) -> None:
        super().__init__(manager, kind, kind.vector)


floats, ints = Vector("clearhead_floats", _FLOATS), Vector("clearhead_ints", _INTS)
address, number, whole = types.int64, types.float32, types.int32


def features() -> frozenset[str]:
    """What this machine's processor can do, in LLVM's words."""
    return frozenset(name for name, there in binding.get_host_cpu_features().items() if there)


def _operation(result: Any, *arguments: Any) -> Callable[[Callable[..., Any]], Any]:
    """Make a function that writes LLVM's code into an operation for numba."""

    def made(write: Callable[..., Any]) -> Any:
        def typed(_context: Any, *_given: Any) -> Any:
            def generate(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
                written = write(builder, *values)
                return context.get_dummy_value() if result is types.void else written

            return result(*arguments), generate

        names = ["context", *(f"value_{i}" for i in range(len(arguments)))]
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD  # numba wants to count them
        given = inspect.Signature([inspect.Parameter(name, kind) for name in names])
        typed.__name__, typed.__doc__ = write.__name__, write.__doc__
        typed.__signature__ = given  # type: ignore[attr-defined]
        return intrinsic(typed)

    return made


def _call(builder: Any, name: str, result: Any, *values: Any) -> Any:
    kind = ir.FunctionType(result, [value.type for value in values])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), values)


def _all(kind: ir.VectorType, value: float) -> ir.Constant:
    return ir.Constant(kind, [value] * kind.count)


def _spread(builder: Any, value: Any, kind: ir.VectorType) -> Any:
    nothing = ir.Constant(kind, ir.Undefined)
    one = builder.insert_element(nothing, value, ir.Constant(INT, 0))
    return builder.shuffle_vector(one, nothing, _all(_INTS, 0))


def _pick(builder: Any, vector: Any, lanes: list[int]) -> Any:
    order = ir.Constant(ir.VectorType(INT, len(lanes)), lanes)
    return builder.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), order)


def _at(builder: Any, where: Any, kind: Any) -> Any:
    return builder.inttoptr(where, kind.as_pointer())


# Memory.
@_operation(floats, address)
def load_floats(builder: Any, where: Any) -> Any:
    """16 float32 numbers."""
    return builder.load(_at(builder, where, _FLOATS), align=4)


@_operation(floats, address)
def load_halves(builder: Any, where: Any) -> Any:
    """16 half-precision numbers, made float32."""
    return builder.fpext(builder.load(_at(builder, where, _HALVES), align=2), _FLOATS)


@_operation(ints, address)
def load_ints(builder: Any, where: Any) -> Any:
    """16 times four bytes."""
    return builder.load(_at(builder, where, _INTS), align=4)


@_operation(types.void, address, floats)
def store_floats(builder: Any, where: Any, vector: Any) -> None:
    """16 float32 numbers to memory."""
    builder.store(vector, _at(builder, where, _FLOATS), align=4)


@_operation(types.void, address, floats)
def store_halves(builder: Any, where: Any, vector: Any) -> None:
    """16 numbers to memory in half precision."""
    builder.store(builder.fptrunc(vector, _HALVES), _at(builder, where, _HALVES), align=2)


@_operation(types.void, address, ints)
def store_ints(builder: Any, where: Any, vector: Any) -> None:
    """16 times four bytes to memory."""
    builder.store(vector, _at(builder, where, _INTS), align=4)


@_operation(floats, address)
def spread_float_at(builder: Any, where: Any) -> Any:
    """One float32 number from memory into all lanes."""
    return _spread(builder, builder.load(_at(builder, where, FLOAT), align=4), _FLOATS)


@_operation(ints, address)
def spread_int_at(builder: Any, where: Any) -> Any:
    """Four bytes from memory into all lanes."""
    return _spread(builder, builder.load(_at(builder, where, INT), align=4), _INTS)


@_operation(number, address)
def float_at(builder: Any, where: Any) -> Any:
    """One float32 number."""
    return builder.load(_at(builder, where, FLOAT), align=4)


@_operation(number, address)
def half_at(builder: Any, where: Any) -> Any:
    """One half-precision number, made float32."""
    return builder.fpext(builder.load(_at(builder, where, HALF), align=2), FLOAT)


@_operation(types.int64, address)
def byte_at(builder: Any, where: Any) -> Any:
    """One byte, from 0 to 255."""
    return builder.zext(builder.load(_at(builder, where, BYTE), align=1), ir.IntType(64))


@_operation(types.int64, address)
def integer_at(builder: Any, where: Any) -> Any:
    """One 64-bit whole number."""
    return builder.load(_at(builder, where, ir.IntType(64)), align=8)


@_operation(types.void, address, number)
def put_float(builder: Any, where: Any, value: Any) -> None:
    """One float32 number to memory."""
    builder.store(value, _at(builder, where, FLOAT), align=4)


@_operation(types.void, address, number)
def put_half(builder: Any, where: Any, value: Any) -> None:
    """One number to memory in half precision."""
    builder.store(builder.fptrunc(value, HALF), _at(builder, where, HALF), align=2)


@_operation(types.void, address, whole)
def put_int(builder: Any, where: Any, value: Any) -> None:
    """One 32-bit whole number to memory."""
    builder.store(value, _at(builder, where, INT), align=4)


@_operation(types.void, address, types.int64)
def put_byte(builder: Any, where: Any, value: Any) -> None:
    """The last eight bits of a whole number to memory."""
    builder.store(builder.trunc(value, BYTE), _at(builder, where, BYTE), align=1)


# Between threads.
@_operation(types.int64, address)
def add_one(builder: Any, where: Any) -> Any:
    """Count up by 1 and return what was there before, as one act."""
    place = _at(builder, where, ir.IntType(64))
    return builder.atomic_rmw("add", place, ir.Constant(ir.IntType(64), 1), "acq_rel")


@_operation(types.int64, address)
def counted(builder: Any, where: Any) -> Any:
    """A count, and with it all that was written to memory before it was reached."""
    return builder.load_atomic(_at(builder, where, ir.IntType(64)), "acquire", 8)


@_operation(types.void)
def pause(builder: Any) -> None:
    """Tell the processor that this loop only waits."""
    if platform.machine().lower() in ("x86_64", "amd64"):
        _call(builder, "llvm.x86.sse2.pause", ir.VoidType())


# Arithmetic, lane by lane.
@_operation(floats, number)
def spread(builder: Any, value: Any) -> Any:
    """One number in all lanes."""
    return _spread(builder, value, _FLOATS)


@_operation(ints)
def no_ints(_builder: Any) -> Any:
    """Sixteen zeros, whole."""
    return _all(_INTS, 0)


@_operation(floats)
def no_floats(_builder: Any) -> Any:
    """Sixteen zeros."""
    return _all(_FLOATS, 0.0)


@_operation(ints)
def lane_numbers(_builder: Any) -> Any:
    """0, 1, 2 … 15."""
    return ir.Constant(_INTS, list(range(LANES)))


@_operation(floats, floats, floats)
def plus(builder: Any, left: Any, right: Any) -> Any:
    """Left + right."""
    return builder.fadd(left, right)


@_operation(floats, floats, floats)
def minus(builder: Any, left: Any, right: Any) -> Any:
    """Left − right."""
    return builder.fsub(left, right)


@_operation(floats, floats, floats)
def times(builder: Any, left: Any, right: Any) -> Any:
    """Left · right."""
    return builder.fmul(left, right)


@_operation(floats, floats, floats)
def over(builder: Any, left: Any, right: Any) -> Any:
    """Left / right."""
    return builder.fdiv(left, right)


@_operation(floats, floats, floats, floats)
def multiply_add(builder: Any, left: Any, right: Any, added: Any) -> Any:
    """Left · right + added, rounded once."""
    return _call(builder, "llvm.fma.v16f32", _FLOATS, left, right, added)


@_operation(floats, floats)
def size_of(builder: Any, vector: Any) -> Any:
    """Every number without its sign."""
    return _call(builder, "llvm.fabs.v16f32", _FLOATS, vector)


@_operation(floats, floats, floats)
def larger(builder: Any, left: Any, right: Any) -> Any:
    """The larger of the two; ``right`` where one is NaN."""
    return builder.select(builder.fcmp_ordered(">", left, right), left, right)


@_operation(floats, floats, floats)
def smaller(builder: Any, left: Any, right: Any) -> Any:
    """The smaller of the two; ``right`` where one is NaN."""
    return builder.select(builder.fcmp_ordered("<", left, right), left, right)


@_operation(floats, floats, floats, floats, floats)
def where_below(builder: Any, left: Any, right: Any, then: Any, otherwise: Any) -> Any:
    """``then`` where left < right, ``otherwise`` elsewhere."""
    return builder.select(builder.fcmp_ordered("<", left, right), then, otherwise)


@_operation(floats, floats, types.int64, types.int64)
def between(builder: Any, vector: Any, first: Any, last: Any) -> Any:
    """Lanes from ``first`` up to before ``last``; −infinity in the others."""
    lanes = ir.Constant(_INTS, list(range(LANES)))
    low = _spread(builder, builder.trunc(first, INT), _INTS)
    high = _spread(builder, builder.trunc(last, INT), _INTS)
    inside = builder.and_(
        builder.icmp_signed(">=", lanes, low), builder.icmp_signed("<", lanes, high)
    )
    return builder.select(inside, vector, _all(_FLOATS, float("-inf")))


def _folded(builder: Any, vector: Any, join: Callable[[Any, Any], Any]) -> Any:
    """All lanes joined, in a fixed order: halves, then halves of them."""
    count = LANES
    while count > 1:
        count //= 2
        first = _pick(builder, vector, list(range(count)))
        vector = join(first, _pick(builder, vector, list(range(count, 2 * count))))
    return builder.extract_element(vector, ir.Constant(INT, 0))


@_operation(number, floats)
def sum_of(builder: Any, vector: Any) -> Any:
    """All lanes added up."""
    return _folded(builder, vector, builder.fadd)


@_operation(number, floats)
def largest_of(builder: Any, vector: Any) -> Any:
    """The largest lane."""

    def join(left: Any, right: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", left, right), left, right)

    return _folded(builder, vector, join)


@_operation(whole, ints)
def int_sum_of(builder: Any, vector: Any) -> Any:
    """All lanes added up."""
    return _folded(builder, vector, builder.add)


# Between whole numbers and floats, and the bits of both.
@_operation(floats, ints)
def as_floats(builder: Any, vector: Any) -> Any:
    """The same numbers as float32."""
    return builder.sitofp(vector, _FLOATS)


@_operation(ints, floats)
def as_ints(builder: Any, vector: Any) -> Any:
    """Whole numbers given as float32."""
    return builder.fptosi(vector, _INTS)


@_operation(floats, floats)
def rounded(builder: Any, vector: Any) -> Any:
    """The nearest whole numbers, halves to even."""
    return _call(builder, "llvm.nearbyint.v16f32", _FLOATS, vector)


@_operation(floats, ints)
def power_of_two(builder: Any, exponents: Any) -> Any:
    """2ⁿ for whole n from −126 to 127."""
    bits = builder.shl(builder.add(exponents, _all(_INTS, 127)), _all(_INTS, 23))
    return builder.bitcast(bits, _FLOATS)


@_operation(ints, ints, ints)
def plus_ints(builder: Any, left: Any, right: Any) -> Any:
    """Left + right."""
    return builder.add(left, right)


@_operation(ints, ints)
def low_nibbles(builder: Any, vector: Any) -> Any:
    """The lower four bits of every byte."""
    return builder.and_(vector, _all(_INTS, 0x0F0F0F0F))


@_operation(ints, ints)
def high_nibbles(builder: Any, vector: Any) -> Any:
    """The upper four bits of every byte."""
    return builder.and_(builder.lshr(vector, _all(_INTS, 4)), _all(_INTS, 0x0F0F0F0F))


# Products of bytes w (0 … 255) and 16-bit numbers x, four to a lane. An x is held as two bytes
# for VNNI, x = 256·upper + lower, and as it is elsewhere: ``store_split`` lays the two parts of
# four numbers side by side, ``dot_first`` and ``dot_second`` take one part each, and ``joined``
# makes one sum of both.
def _byte_products(width: int) -> Callable[[Any, Any, Any, Any], Any]:
    """Sums of four products of bytes, ``width`` bits at once."""
    name = f"llvm.x86.avx512.vpdpbusd.{width}"
    part = ir.VectorType(INT, width // 32)
    bytes_part = ir.VectorType(BYTE, width // 8)

    def call(builder: Any, total: Any, weights: Any, numbers: Any) -> Any:
        factors = (builder.bitcast(factor, bytes_part) for factor in (weights, numbers))
        return _call(builder, name, part, total, *factors)

    def by_halves(builder: Any, total: Any, weights: Any, numbers: Any) -> Any:
        halves = []
        for lanes in (list(range(8)), list(range(8, 16))):
            parts = (_pick(builder, vector, lanes) for vector in (total, weights, numbers))
            halves.append(call(builder, *parts))
        return builder.shuffle_vector(*halves, ir.Constant(_INTS, list(range(LANES))))

    return call if width == 512 else by_halves


def _pair_products(builder: Any, total: Any, weights: Any, numbers: Any) -> Any:
    """Sums of two products of 16-bit numbers; LLVM knows the machine's instruction for it."""
    wide = ir.VectorType(INT, 2 * LANES)
    factors = (builder.bitcast(factor, _SHORTS) for factor in (weights, numbers))
    products = builder.mul(*(builder.sext(factor, wide) for factor in factors))
    first = _pick(builder, products, list(range(0, 2 * LANES, 2)))
    second = _pick(builder, products, list(range(1, 2 * LANES, 2)))
    return builder.add(total, builder.add(first, second))


class Products:
    """The operations on split numbers for one kind of machine."""

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

        @_operation(ints, ints, ints, ints)
        def dot_first(builder: Any, total: Any, weights: Any, numbers: Any) -> Any:
            return multiply(builder, total, first_weights(builder, weights), numbers)

        @_operation(ints, ints, ints, ints)
        def dot_second(builder: Any, total: Any, weights: Any, numbers: Any) -> Any:
            return multiply(builder, total, second_weights(builder, weights), numbers)

        @_operation(ints, ints, ints)
        def joined(builder: Any, first: Any, second: Any) -> Any:
            return builder.add(builder.shl(first, _all(_INTS, self._shift)), second)

        @_operation(types.void, address, ints)
        def store_split(builder: Any, where: Any, vector: Any) -> None:
            split = self._split(builder, vector)
            builder.store(split, _at(builder, where, split.type), align=4)

        self.dot_first, self.dot_second = dot_first, dot_second
        self.joined, self.store_split = joined, store_split


def _whole_bytes(_builder: Any, weights: Any) -> Any:
    return weights


def _even_bytes(builder: Any, weights: Any) -> Any:
    return builder.and_(weights, _all(_INTS, 0x00FF00FF))


def _odd_bytes(builder: Any, weights: Any) -> Any:
    return _even_bytes(builder, builder.lshr(weights, _all(_INTS, 8)))


def _bytes_apart(builder: Any, vector: Any) -> Any:
    """Of each four numbers the upper bytes, then the lower ones: x = 256·upper + lower."""
    upper = builder.ashr(builder.add(vector, _all(_INTS, 128)), _all(_INTS, 8))
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
    return _pick(builder, shorts, [four + i for four in range(0, LANES, 4) for i in (0, 2, 1, 3)])


def products_of_this_machine() -> Products:
    """VNNI where there is some, of whatever width."""
    able = features()
    if platform.machine().lower() in ("x86_64", "amd64"):
        if "avx512vnni" in able:
            return Products(512)
        if "avxvnni" in able:
            return Products(256)
    return Products(None)
