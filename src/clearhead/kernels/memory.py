"""Memory for compiled functions: vectors and single numbers at an address, counts that threads
share, and functions at an address. Addresses are whole numbers, in bytes.
"""
# numba's decorators have no types, and what its vectors are is known to LLVM alone.
# mypy: disable-error-code="untyped-decorator, no-any-return, misc"

from __future__ import annotations

import platform
from typing import Any

from llvmlite import ir
from numba import types

from clearhead.kernels.operations import (
    BYTE,
    BYTES,
    FLOAT,
    FLOATS,
    HALF,
    HALVES,
    INT,
    INTS,
    LANES,
    SHORT,
    address,
    broadcast_to,
    floats,
    function_call,
    in_all_lanes,
    intrinsic_call,
    ints,
    number,
    operation,
    pointer,
    whole,
)


@operation(floats, address)
def load_floats(builder: Any, where: Any) -> Any:
    """16 float32 numbers."""
    return builder.load(pointer(builder, where, FLOATS), align=4)


@operation(floats, address)
def load_halves(builder: Any, where: Any) -> Any:
    """16 half-precision numbers, made float32."""
    return builder.fpext(builder.load(pointer(builder, where, HALVES), align=2), FLOATS)


@operation(floats, address)
def load_brain_floats(builder: Any, where: Any) -> Any:
    """16 bfloat16 numbers, the upper halves of float32 ones, made float32."""
    kind = ir.VectorType(SHORT, LANES)
    shorts = builder.zext(builder.load(pointer(builder, where, kind), align=2), INTS)
    return builder.bitcast(builder.shl(shorts, in_all_lanes(INTS, 16)), FLOATS)


@operation(ints, address)
def load_bytes(builder: Any, where: Any) -> Any:
    """16 bytes from 0 to 255, each in a lane of its own."""
    return builder.zext(builder.load(pointer(builder, where, BYTES), align=1), INTS)


@operation(ints, address)
def load_signed_bytes(builder: Any, where: Any) -> Any:
    """16 bytes from -128 to 127, each in a lane of its own."""
    return builder.sext(builder.load(pointer(builder, where, BYTES), align=1), INTS)


@operation(ints, address)
def load_ints(builder: Any, where: Any) -> Any:
    """16 times four bytes."""
    return builder.load(pointer(builder, where, INTS), align=4)


@operation(types.void, address, floats)
def store_floats(builder: Any, where: Any, vector: Any) -> None:
    """16 float32 numbers to memory."""
    builder.store(vector, pointer(builder, where, FLOATS), align=4)


@operation(types.void, address, floats)
def store_halves(builder: Any, where: Any, vector: Any) -> None:
    """16 numbers to memory in half precision."""
    builder.store(builder.fptrunc(vector, HALVES), pointer(builder, where, HALVES), align=2)


@operation(types.void, address, ints)
def store_ints(builder: Any, where: Any, vector: Any) -> None:
    """16 times four bytes to memory."""
    builder.store(vector, pointer(builder, where, INTS), align=4)


@operation(floats, address)
def broadcast_float_at(builder: Any, where: Any) -> Any:
    """One float32 number from memory into all lanes."""
    return broadcast_to(builder, builder.load(pointer(builder, where, FLOAT), align=4), FLOATS)


@operation(ints, address)
def broadcast_int_at(builder: Any, where: Any) -> Any:
    """Four bytes from memory into all lanes."""
    return broadcast_to(builder, builder.load(pointer(builder, where, INT), align=4), INTS)


@operation(number, address)
def float_at(builder: Any, where: Any) -> Any:
    """One float32 number."""
    return builder.load(pointer(builder, where, FLOAT), align=4)


@operation(number, address)
def half_at(builder: Any, where: Any) -> Any:
    """One half-precision number, made float32."""
    return builder.fpext(builder.load(pointer(builder, where, HALF), align=2), FLOAT)


@operation(types.int64, address)
def byte_at(builder: Any, where: Any) -> Any:
    """One byte, from 0 to 255."""
    return builder.zext(builder.load(pointer(builder, where, BYTE), align=1), ir.IntType(64))


@operation(types.int64, address)
def short_at(builder: Any, where: Any) -> Any:
    """Two bytes, from 0 to 65,535."""
    return builder.zext(builder.load(pointer(builder, where, SHORT), align=1), ir.IntType(64))


@operation(types.int64, address)
def word_at(builder: Any, where: Any) -> Any:
    """Four bytes, from 0 to 2³² − 1."""
    return builder.zext(builder.load(pointer(builder, where, INT), align=1), ir.IntType(64))


@operation(types.int64, address)
def integer_at(builder: Any, where: Any) -> Any:
    """One 64-bit whole number."""
    return builder.load(pointer(builder, where, ir.IntType(64)), align=8)


@operation(types.void, address, number)
def put_float(builder: Any, where: Any, value: Any) -> None:
    """One float32 number to memory."""
    builder.store(value, pointer(builder, where, FLOAT), align=4)


@operation(types.void, address, number)
def put_half(builder: Any, where: Any, value: Any) -> None:
    """One number to memory in half precision."""
    builder.store(builder.fptrunc(value, HALF), pointer(builder, where, HALF), align=2)


@operation(types.void, address, whole)
def put_int(builder: Any, where: Any, value: Any) -> None:
    """One 32-bit whole number to memory."""
    builder.store(value, pointer(builder, where, INT), align=4)


@operation(types.void, address, types.int64)
def put_short(builder: Any, where: Any, value: Any) -> None:
    """The last 16 bits of a whole number to memory."""
    builder.store(builder.trunc(value, SHORT), pointer(builder, where, SHORT), align=1)


@operation(types.void, address, types.int64)
def put_word(builder: Any, where: Any, value: Any) -> None:
    """The last 32 bits of a whole number to memory."""
    builder.store(builder.trunc(value, INT), pointer(builder, where, INT), align=1)


@operation(types.void, address, types.int64)
def put_byte(builder: Any, where: Any, value: Any) -> None:
    """The last eight bits of a whole number to memory."""
    builder.store(builder.trunc(value, BYTE), pointer(builder, where, BYTE), align=1)


@operation(types.void)
def keep_order(builder: Any) -> None:
    """Keep LLVM from moving loads and stores across this place; no instruction."""
    nothing = ir.FunctionType(ir.VoidType(), [])
    builder.asm(nothing, "", "~{memory}", [], side_effect=True)


@operation(types.void, address)
def fetch_once(builder: Any, where: Any) -> None:
    """Ask for the line of memory at an address that will be read soon, and then not again for a
    long time: it takes no room in the larger caches. There need be no such memory."""
    read, once, data = INT(0), INT(0), INT(1)
    place = pointer(builder, where, BYTE)
    intrinsic_call(builder, "llvm.prefetch.p0i8", ir.VoidType(), place, read, once, data)


# Between threads.
@operation(types.int64, address)
def add_one(builder: Any, where: Any) -> Any:
    """Count up by 1 and return what was there before, as one act."""
    place = pointer(builder, where, ir.IntType(64))
    return builder.atomic_rmw("add", place, ir.Constant(ir.IntType(64), 1), "acq_rel")


@operation(types.int64, address)
def counted(builder: Any, where: Any) -> Any:
    """A count, and with it all that was written to memory before it was reached."""
    return builder.load_atomic(pointer(builder, where, ir.IntType(64)), "acquire", 8)


@operation(types.void)
def pause(builder: Any) -> None:
    """Tell the processor that this loop only waits."""
    if platform.machine().lower() in ("x86_64", "amd64"):
        intrinsic_call(builder, "llvm.x86.sse2.pause", ir.VoidType())


# Functions whose address is known when they are called.
@operation(types.void, address, *[types.int64] * 3)
def call_with_three(builder: Any, where: Any, *values: Any) -> None:
    """Call the C function of three whole numbers at an address."""
    function_call(builder, where, *values)


@operation(types.void, address, *[types.int64] * 6)
def call_with_six(builder: Any, where: Any, *values: Any) -> None:
    """Call the C function of six whole numbers at an address."""
    function_call(builder, where, *values)
